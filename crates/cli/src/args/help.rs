//! What stands below each command's flags: exit codes and examples.

pub const TOOLGATE: &str = "\
Examples:
  toolgate new word-count          write a document that passes
  toolgate check tools/            check a folder
  toolgate explain SPEC_PARSE      what a code means";

pub const CHECK: &str = "\
A folder is walked for *.json, *.yaml and *.yml; a file that parses and holds no tool is passed over there, and
reported when it is named directly. Only warnings can be allowed; errors always count.

Exit codes:
  0  nothing found, or warnings only
  1  errors, or warnings with --deny-warnings
  2  a path could not be read; wins over 1

Examples:
  toolgate check tools/ bundle.json
  toolgate check --deny-warnings --format github tools/
  toolgate check --format sarif tools/ > toolgate.sarif
  cat tool.yaml | toolgate check --stdin-format yaml -";

pub const NEW: &str = "\
JavaScript tools are written as JSON, the others as YAML with the schema's place in the first line, so that an
editor completes and checks while you type. An existing file is never overwritten.

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
  toolgate explain LINT_WILDCARD_HOST";

pub const COMPLETIONS: &str = "\
Examples:
  toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate
  toolgate completions zsh > ~/.zfunc/_toolgate";

pub const MAN: &str = "\
Examples:
  toolgate man | man -l -
  toolgate man --out ~/.local/share/man/man1";
