//! What stands below each command's flags: exit codes and examples.

pub const TOOLGATE: &str = "\
Examples:
  toolgate init my-tools           a folder with everything that a gateway needs
  toolgate serve                   serve the published tools
  toolgate new word-count          write a document that passes
  toolgate check tools/            check a folder
  toolgate resolve tools/a.json    what a tool may touch, and who says so
  toolgate explain SPEC_PARSE      what a code means";

pub const CHECK: &str = "\
A folder is walked for *.json, *.yaml and *.yml; a file that parses and holds no tool is passed over there, and
reported when it is named directly. Only warnings can be allowed; errors always count.

Exit codes:
  0  nothing found, or warnings only
  1  errors, or warnings with --deny-warnings
  2  a path could not be read, or no tool was found; wins over 1

Examples:
  toolgate check tools/ bundle.json
  toolgate check --deny-warnings --format github tools/
  toolgate check --format sarif tools/ > toolgate.sarif
  cat tool.yaml | toolgate check --stdin-format yaml -";

pub const RESOLVE: &str = "\
Nothing is run. Of the environment only the presence of variables is shown, never a value.

Exit codes:
  0  resolved
  1  the document has errors or cannot be resolved
  2  it could not be read or written

Examples:
  toolgate resolve tools/word-count.yaml
  toolgate resolve bundle.json#word-count --format json
  toolgate resolve tools/word-count.yaml --write-safety";

pub const RUN: &str = "\
The document must be sound. Its code runs jailed, under the effective policy, with the gateway's environment for the
placeholders of its static variables; secrets are masked in all that is shown. Nothing is recorded.

Exit codes:
  0  the tool returned
  1  the tool failed, hit a limit, or its document has errors
  2  it could not be read, or no sandbox could be made

Examples:
  toolgate run tools/word-count.yaml text=\"to be or not to be\"
  toolgate run tools/sum.json numbers:='[1, 2, 3]'
  toolgate run tools/read-note.json path=shopping.md --workspace ~/notes --format json";

pub const TEST: &str = "\
Every JavaScript tool found is called once with its test values, through all stages, in the sandbox it would be served
in; nobody is asked. Tools of other kinds are passed over. A folder is walked as by `check`. Where a document grants more
than its run used, that is said; one run is a witness, not a proof, so look before you --tighten.

Exit codes:
  0  every tool passed
  1  a tool failed or has errors
  2  a path could not be read, or no tool was found

Examples:
  toolgate test
  toolgate test tools/ --tighten
  toolgate test tools/word-count.yaml --format json";

pub const DIFF: &str = "\
What reaches further comes first. Bundles are compared tool by tool, by name: an added tool reaches further, a
removed one does not. What can be called neither wider nor narrower, such as one host in place of another, counts
as wider. Changed code, parameters or descriptions are shown and do not count.

Exit codes:
  0  the same reach, or less
  1  more reach or risk, or errors in either version
  2  a version could not be read

Examples:
  toolgate diff old.json new.json
  git show main:tools/a.yaml > /tmp/a.yaml && toolgate diff /tmp/a.yaml tools/a.yaml";

pub const IMPORT: &str = "\
A pass that somebody else recorded is never trusted: every tool becomes a draft. Fields that toolgate does not know
are kept as they are written. Nothing is written if a document has errors or a file is there already.

Exit codes:
  0  all imported
  1  errors; nothing was written, or with --keep-going only the rest
  2  something could not be read or written

Examples:
  toolgate import bundle.json --into tools/
  toolgate import a.yaml b.json --into tools/ --force";

pub const EXPORT: &str = "\
Nothing is exported if a document has errors. A bundle names the tools that are not drafts as exposed.

Exit codes:
  0  exported
  1  errors; nothing was exported
  2  something could not be read or written

Examples:
  toolgate export tools/ -o bundle.json
  toolgate export tools/ --as mcp";

pub const NEW: &str = "\
The document is YAML with comments; JavaScript stands in it as plain lines below `code: |`. `--format json` writes a
JavaScript tool as JSON. Each document names its schema for editors: the one in the nearest `schemas` folder upwards,
or a copy in `.toolgate` beside it. An existing document is never overwritten.

Exit codes:
  0  written
  2  not written

Examples:
  toolgate new word-count
  toolgate new list-branches --kind cli --dir tools/";

pub const SCHEMA: &str = "\
Examples:
  toolgate schema --list
  toolgate schema tool-manifest > tool-manifest.schema.json";

pub const EXPLAIN: &str = "\
Examples:
  toolgate explain
  toolgate explain LINT_WILDCARD_HOST
  toolgate explain check.path_outside_roots";

pub const COMPLETIONS: &str = "\
Examples:
  toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate
  toolgate completions zsh > ~/.zfunc/_toolgate";

pub const MAN: &str = "\
Examples:
  toolgate man | man -l -
  toolgate man --out ~/.local/share/man/man1";

pub const INIT: &str = "\
Nothing that is there already is overwritten.

Exit codes:
  0  ready
  2  something could not be written

Examples:
  toolgate init my-tools
  toolgate init --preset dev";

pub const SERVE: &str = "\
Only tools that are published are served, to callers that prove who they are. Files are watched: a good edit is live
within a second, a bad one leaves the last good set in force. SIGTERM and Ctrl-C finish running calls first.

Exit codes:
  0  stopped
  2  could not start

Examples:
  toolgate serve
  toolgate serve --listen 127.0.0.1:9000
  toolgate serve --stdio";

pub const LIST: &str = "\
Exit codes:
  0  listed
  1  a document has errors
  2  something could not be read

Examples:
  toolgate list
  toolgate list --format json";

pub const PUBLISH: &str = "\
Each tool is run once with its test values, in the sandbox it will be served in. A tool that writes files gets a copy of
the workspace for this run. A run that could change anything else needs your yes first, or --for-real.

What passes is published for exactly this document under exactly this policy: an edit makes it a draft again. A tool
that was taken back by `unpublish` is published again only by its name, edited or not.

Exit codes:
  0  published
  1  a tool failed, or somebody said no
  2  something could not be read or written

Examples:
  toolgate publish
  toolgate publish word-count --yes";

pub const UNPUBLISH: &str = "\
Exit codes:
  0  taken back
  2  there is no such tool, or something could not be written

Examples:
  toolgate unpublish word-count";

pub const CALL: &str = "\
The call is checked, decided, executed, filtered and written down as any other. Where a person must be asked and this is a
terminal, you are, unless `approvals.client_may_answer` leaves the answer to the queue.

Exit codes:
  0  released
  1  refused or failed
  2  could not be made

Examples:
  toolgate call word-count text=\"to be or not to be\"
  toolgate call sum numbers:='[1, 2, 3]' --format json";

pub const APPROVALS: &str = "\
An approval lets one call run once: this caller, this tool, these arguments, under this policy.

Exit codes:
  0  done
  1  it cannot be answered any more
  2  something could not be read

Examples:
  toolgate approvals list
  toolgate approvals approve apr_0123456789abcdef0123456789abcdef
  toolgate approvals watch";

pub const TOKEN: &str = "\
A token is shown once and kept as a digest. Taking it back works at once, also for a gateway that runs.

Exit codes:
  0  done
  2  there is no such token, or something could not be written: a token that is taken back without its record is revoked
     all the same

Examples:
  toolgate token create laptop --permission files.read
  toolgate token create ops --admin --expires 12h
  toolgate token revoke laptop";

pub const AUDIT: &str = "\
Reading and verifying work while a gateway writes.

Exit codes:
  0  nothing is wrong
  1  something was changed, or is not there
  2  the journal could not be read

Examples:
  toolgate audit verify
  toolgate audit query --decision DENIED --from 2026-11-01
  toolgate audit receipt 0198c0de-0000-7000-8000-000000000000 > receipt.json
  toolgate audit receipt --check receipt.json --key ed25519:...";

pub const CONFIG: &str = "\
Exit codes:
  0  shown
  2  the configuration has errors

Examples:
  toolgate config show --origin";

pub const CONNECT: &str = "\
The client's file is copied into the state folder first. With --transport http a token is made for the client, in place of
the one it had; not in a folder below the workspace, where tools could read it. A file that cannot be extended is refused
before anything is changed.

Exit codes:
  0  written
  2  something could not be read or written

Examples:
  toolgate connect claude
  toolgate connect claude-desktop
  toolgate connect cursor --scope user --transport http
  toolgate connect vscode --print";

pub const DISCONNECT: &str = "\
Only our entry is removed; every other byte of the file stays. The file is copied into the state folder first.

Exit codes:
  0  removed, or it was not there
  2  something could not be read or written

Examples:
  toolgate disconnect claude
  toolgate disconnect cursor --scope user";

pub const DOCTOR: &str = "\
Exit codes:
  0  everything that is required is there
  1  something is missing
  2  the configuration has errors

Examples:
  toolgate doctor";
