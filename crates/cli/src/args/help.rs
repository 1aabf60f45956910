//! The text below each command's flags: notes, exit codes and examples.

pub const TOOLGATE: &str = "\
Examples:
  toolgate init my-tools           set up a directory for a gateway
  toolgate serve                   serve the published tools
  toolgate new word-count          write a document that passes
  toolgate check tools/            check a directory
  toolgate resolve tools/a.json    what a tool may touch, and why
  toolgate explain SPEC_PARSE      what a code means";

pub const CHECK: &str = "\
In a directory, check reads *.json, *.yaml and *.yml and skips files without a tool. A file that you name must contain
one. Only warnings can be allowed; errors always count.

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
Runs nothing. Shows whether environment variables are set, never their values.

Exit codes:
  0  resolved
  1  the document has errors or cannot be resolved
  2  it could not be read or written

Examples:
  toolgate resolve tools/word-count.yaml
  toolgate resolve bundle.json#word-count --format json
  toolgate resolve tools/word-count.yaml --write-safety";

pub const RUN: &str = "\
The document must be free of errors. The tool runs in its sandbox under the effective policy. Placeholders in static
variables are filled from the environment; secrets are redacted in the output. Nothing is recorded.

Exit codes:
  0  the tool returned
  1  the tool failed, hit a limit, or its document has errors
  2  it could not be read, or the sandbox could not be created

Examples:
  toolgate run tools/word-count.yaml text=\"to be or not to be\"
  toolgate run tools/sum.json numbers:='[1, 2, 3]'
  toolgate run tools/read-note.json path=shopping.md --workspace ~/notes --format json";

pub const TEST: &str = "\
Calls every tool once with its test values, through all stages, in the sandbox that would serve it, without asking for
approval. Directories are read as by `check`. Reports grants that the run did not use. Another call may need them, so
review the report before you use --tighten.

Exit codes:
  0  every tool passed
  1  a tool failed or has errors
  2  a path could not be read, or no tool was found

Examples:
  toolgate test
  toolgate test tools/ --tighten
  toolgate test tools/word-count.yaml --format json";

pub const DIFF: &str = "\
Wider changes come first. Bundles are compared tool by tool, by name: an added tool is wider, a removed one narrower. A
change that is neither, such as one host instead of another, counts as wider. Changed code, parameters or descriptions
are shown and do not count.

Exit codes:
  0  the same reach, or less
  1  more reach or risk, or errors in either version
  2  a version could not be read

Examples:
  toolgate diff old.json new.json
  git show main:tools/a.yaml > /tmp/a.yaml && toolgate diff /tmp/a.yaml tools/a.yaml";

pub const IMPORT: &str = "\
Every tool becomes a draft, because a pass recorded elsewhere is not trusted. Unknown fields are kept as written.
Nothing is written if a document has errors or a file exists.

Exit codes:
  0  all imported
  1  errors; nothing was written, or with --keep-going only the rest
  2  something could not be read or written

Examples:
  toolgate import bundle.json --into tools/
  toolgate import a.yaml b.json --into tools/ --force";

pub const EXPORT: &str = "\
Nothing is exported if a document has errors. The bundle exposes all tools that are not drafts.

Exit codes:
  0  exported
  1  errors; nothing was exported
  2  something could not be read or written

Examples:
  toolgate export tools/ -o bundle.json
  toolgate export tools/ --as mcp";

pub const NEW: &str = "\
The document is YAML with comments and JavaScript below `code: |`. `--format json` writes a JavaScript tool as JSON.
Each document names its schema for editors: the one in the nearest `schemas` directory upwards, or a copy in
`.toolgate` next to the document. An existing document is never overwritten.

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
Existing files are kept.

Exit codes:
  0  ready
  2  something could not be written

Examples:
  toolgate init my-tools
  toolgate init --preset dev";

pub const SERVE: &str = "\
Serves published tools to authenticated callers. Watches the files: a valid edit is live within a second; after an
invalid one the last valid state stays active. SIGTERM and Ctrl-C let running calls finish.

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
Runs each tool once with its test values, in the sandbox that will serve it. A tool that writes files gets a copy of
the workspace. A run that could change anything else needs your confirmation, or --for-real.

A pass is valid for exactly this document and policy: an edit makes the tool a draft again. To publish a tool again
after `unpublish`, name it.

Exit codes:
  0  published
  1  a tool failed, or was not confirmed
  2  something could not be read or written

Examples:
  toolgate publish
  toolgate publish word-count --yes";

pub const UNPUBLISH: &str = "\
Exit codes:
  0  unpublished
  2  there is no such tool, or something could not be written

Examples:
  toolgate unpublish word-count";

pub const CALL: &str = "\
The call passes through all stages and is recorded like any other. If it needs approval, you are asked on the terminal,
unless `approvals.client_may_answer` sends the question to the queue.

Exit codes:
  0  released
  1  refused or failed
  2  the call could not be made

Examples:
  toolgate call word-count text=\"to be or not to be\"
  toolgate call sum numbers:='[1, 2, 3]' --format json";

pub const APPROVALS: &str = "\
An approval lets one call run once: this caller, this tool, these arguments, under this policy.

Exit codes:
  0  done
  1  the question can no longer be answered
  2  something could not be read

Examples:
  toolgate approvals list
  toolgate approvals approve apr_0123456789abcdef0123456789abcdef
  toolgate approvals watch";

pub const UPSTREAM: &str = "\
A server runs in a jail: it sees no files and no network unless `read`, `write` or `host` grants them. Its tools are
not served before an operator approves them. A tool that its server changes later is refused until it is approved again.

Exit codes:
  0  done
  1  a tool cannot be approved
  2  there is no such server, it does not start, or something could not be written

Examples:
  toolgate upstream add notes 'node /opt/notes/server.js' --read docs
  toolgate upstream review notes
  toolgate upstream approve notes search_notes";

pub const TOKEN: &str = "\
A token is shown once and stored as a digest. Revoking works at once, also for a running gateway.

Exit codes:
  0  done
  2  there is no such token, or something could not be written; `revoke` revokes the token even if the journal cannot
     be written

Examples:
  toolgate token create laptop --permission files.read
  toolgate token create ops --admin --expires 12h
  toolgate token revoke laptop";

pub const SECRET: &str = "\
Values are encrypted in the state directory and never shown. A running gateway uses a new value at once.
The key is kept elsewhere: see `secrets.key` in toolgate.yaml.

Exit codes:
  0  done
  2  there is no such secret, or the store cannot be opened or written

Examples:
  toolgate secret set GITHUB_TOKEN --tool github_issues
  pass show github | toolgate secret set GITHUB_TOKEN
  toolgate secret import-env GITHUB_TOKEN WEATHER_KEY
  toolgate secret rotate";

pub const AUDIT: &str = "\
Reading and verifying work while a gateway writes.

Exit codes:
  0  no problems
  1  a record was changed or is missing
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
Backs the client's file up into the state directory first. --transport http creates a token for the client and revokes
its old one; it refuses a file below the workspace, where tools could read the token. A file that cannot be edited is
refused before anything changes.

Exit codes:
  0  written
  2  something could not be read or written

Examples:
  toolgate connect claude
  toolgate connect claude-desktop
  toolgate connect cursor --scope user --transport http
  toolgate connect vscode --print";

pub const DISCONNECT: &str = "\
Removes only the entry `toolgate`; every other byte of the file stays. Backs the file up into the state directory first.

Exit codes:
  0  removed, or there was no entry
  2  something could not be read or written

Examples:
  toolgate disconnect claude
  toolgate disconnect cursor --scope user";

pub const DOCTOR: &str = "\
Exit codes:
  0  everything required works
  1  something required is missing
  2  the configuration has errors

Examples:
  toolgate doctor";
