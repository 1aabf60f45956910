//! Table of interpreters: their options, and how they treat the words after the program.

use super::super::command;

pub struct Dialect {
    names: &'static [&'static str],
    /// Letters whose option is followed by code.
    pub code: &'static str,
    /// Letters whose option certainly takes no value.
    pub plain: &'static str,
    pub operands: InterpreterOperands,
    /// Whether this literal word makes the interpreter run the operands, or open them like programs.
    pub runs_operands: fn(&str) -> bool,
    /// The meaning of `-m`.
    pub module_flag: ModuleFlag,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub enum ModuleFlag {
    /// The next word is a Python module.
    Python,
    /// The next word is a program like any other.
    Plain,
}

/// How the interpreter treats the words after the program.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum InterpreterOperands {
    /// They belong to the program, even if they look like options.
    Data,
    /// They belong to the script, also after literal code.
    AfterScript,
    /// They are data, but may also be options.
    Permuted,
    /// They may contain commands, and so may standard input.
    Code,
    /// They belong to the named program, which may be an interpreter itself.
    Inner,
}

impl Dialect {
    /// Matches the name or a build: `python3.12-dbg` is a `python`. Editors match only with a version number, because an author's
    /// program may begin with the name of an editor (`view-report`).
    pub fn of_family(family: &str) -> Option<&'static Self> {
        let is_build = |dialect: &&Self| {
            dialect.names.iter().filter(|name| name.len() >= SHORTEST_OF_A_BUILD).any(|name| {
                command::is_build(family, name)
                    || (dialect.operands != InterpreterOperands::Code && command::is_variant(family, name))
            })
        };
        let exact = DIALECTS.iter().find(|dialect| dialect.names.contains(&family));
        exact.or_else(|| DIALECTS.iter().find(is_build))
    }
}

/// Each dialect exists once, so this compares addresses.
impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// Shorter names match exactly: `ed25519` is not `ed`.
const SHORTEST_OF_A_BUILD: usize = 3;

/// Words that come before the script.
pub const SUBCOMMANDS: [&str; 13] = [
    "bench",
    "dlx",
    "exec",
    "inspect",
    "repl",
    "run",
    "run-script",
    "serve",
    "task",
    "test",
    "tool",
    "watch",
    "x",
];

/// Python modules that only read, write or show their operands. Others import or run them, or read commands (`timeit`, `pdb`,
/// `unittest`, `pickle`). For an unlisted module, the author must name a script instead.
pub const DATA_MODULES: [&str; 22] = [
    "ast",
    "base64",
    "black",
    "calendar",
    "compileall",
    "dis",
    "gzip",
    "http.server",
    "json",
    "json.tool",
    "markdown",
    "mimetypes",
    "py_compile",
    "pycodestyle",
    "pyflakes",
    "quopri",
    "ruff",
    "tarfile",
    "tokenize",
    "uuid",
    "yamllint",
    "zipfile",
];

/// Options of runners without a value. The next word is the program.
pub const RUNNER_SWITCHES: [&str; 17] = [
    "--active",
    "--bun",
    "--exact",
    "--frozen",
    "--isolated",
    "--locked",
    "--no-cache",
    "--no-config",
    "--no-dev",
    "--no-install",
    "--no-progress",
    "--no-project",
    "--no-sync",
    "--offline",
    "--quiet",
    "--verbose",
    "--yes",
];

const fn dialect(names: &'static [&'static str], code: &'static str, plain: &'static str) -> Dialect {
    Dialect {
        names,
        code,
        plain,
        operands: InterpreterOperands::Data,
        runs_operands: |_| false,
        module_flag: ModuleFlag::Plain,
    }
}

/// With `-n` or `-p`, Perl opens its operands with the two-argument `open`, which runs `id|` as a program. Code that reads the
/// operands does the same. `-a` and `-F` imply `-n`.
fn opens_by_old_rules(text: &str) -> bool {
    // The rest after one of these letters is its value.
    let flags = text.strip_prefix('-').and_then(|letters| letters.split(PERL_VALUES).next());
    flags.is_some_and(|flags| flags.contains(['F', 'a', 'n', 'p'])) || reads_operands(text)
}

/// Whether Perl code reads the operands through the handle `ARGV` or the empty handle. `<<>>` opens only files, and `@ARGV` and
/// `$ARGV[0]` are only names.
fn reads_operands(code: &str) -> bool {
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let is_reader =
        ["<>", "eof()", "readline"].iter().any(|reader| code.replace("<<>>", "").contains(reader));
    is_reader
        || code
            .match_indices("ARGV")
            .any(|(at, _)| !code.get(..at).unwrap_or_default().ends_with(['$', '@', '#']))
}

const PERL_VALUES: [char; 11] = ['C', 'D', 'E', 'I', 'M', 'V', 'e', 'i', 'm', 'x', ':'];

/// With these words, every following operand is a file to run.
fn runs_tests(text: &str) -> bool {
    matches!(text, "--test" | "bench" | "test")
}

/// `npm init x` runs the package `create-x`.
fn runs_packages(text: &str) -> bool {
    matches!(text, "create" | "init" | "innit") || runs_tests(text)
}

/// `go run a.go b.go` runs both.
fn runs_sources(text: &str) -> bool {
    text == "generate" || text.rsplit_once('.').is_some_and(|(_, end)| end == "go") || runs_tests(text)
}

/// Commands of Redis and similar servers that are followed by code, or select the code to load.
fn runs_on_server(text: &str) -> bool {
    ["config", "debug", "eval", "eval_ro", "function", "module", "script"]
        .iter()
        .any(|command| text.eq_ignore_ascii_case(command))
}

/// By family: `sqlite3` is `sqlite`. Editors, database clients and other programs that read commands from any file or from standard
/// input have no position where a caller value is only data. `guile -e` only names a function of the following script, so the
/// script is still open.
static DIALECTS: [Dialect; 17] = [
    Dialect {
        module_flag: ModuleFlag::Python,
        ..dialect(&["bpython", "ipython", "jython", "pypy", "python", "pythonw"], "c", "BEIOPSbdiqsuvx")
    },
    Dialect { runs_operands: opens_by_old_rules, ..dialect(&["perl"], "eE", "aclnpstTuUwWX") },
    dialect(&["irb", "jruby", "ruby"], "e", "alnpsSvwy"),
    dialect(&["php"], "rRBE", "nqs"),
    Dialect { operands: InterpreterOperands::AfterScript, ..dialect(&["lua", "luajit"], "e", "EivW") },
    dialect(&["guile"], "c", ""),
    Dialect {
        runs_operands: runs_tests,
        ..dialect(&["deno", "node", "nodejs", "ts-node", "tsx"], "ep", "i")
    },
    // It also runs code of packages.
    Dialect {
        runs_operands: runs_tests,
        operands: InterpreterOperands::Inner,
        ..dialect(&["bun"], "ep", "i")
    },
    dialect(&["awk", "gawk", "mawk", "nawk", "original-awk"], "", ""),
    dialect(
        &[
            "bb",
            "clojure",
            "crystal",
            "dart",
            "elixir",
            "escript",
            "gjs",
            "groovy",
            "iex",
            "java",
            "julia",
            "kotlin",
            "ocaml",
            "osascript",
            "qjs",
            "racket",
            "raku",
            "rscript",
            "runghc",
            "runhaskell",
            "swift",
            "swipl",
            "tclsh",
            "wish",
            "zig",
        ],
        "eE",
        "",
    ),
    Dialect { runs_operands: runs_sources, ..dialect(&["go"], "", "") },
    Dialect { runs_operands: runs_on_server, ..dialect(&["redis-cli", "valkey-cli"], "", "x") },
    // The package is the program.
    Dialect {
        operands: InterpreterOperands::Inner,
        module_flag: ModuleFlag::Python,
        ..dialect(&["bunx", "npx", "pipx", "pnpx", "uv", "uvx"], "c", "qy")
    },
    Dialect {
        operands: InterpreterOperands::Inner,
        runs_operands: runs_packages,
        ..dialect(&["npm", "pnpm", "yarn", "yarnpkg"], "c", "qy")
    },
    // They start a program in an environment with its packages.
    Dialect {
        operands: InterpreterOperands::Inner,
        ..dialect(
            &["bundle", "conda", "hatch", "mamba", "micromamba", "pdm", "pipenv", "poetry", "rye"],
            "",
            "",
        )
    },
    Dialect { operands: InterpreterOperands::Permuted, ..dialect(&["sed", "gsed"], "e", "Einrsuz") },
    Dialect {
        operands: InterpreterOperands::Code,
        ..dialect(
            &[
                "beeline",
                "cadaver",
                "clickhouse-client",
                "cqlsh",
                "crontab",
                "cypher-shell",
                "dc",
                "duckdb",
                "ed",
                "emacs",
                "emacs-gtk",
                "emacs-lucid",
                "emacs-nox",
                "emacs-pgtk",
                "ex",
                "ftp",
                "ghci",
                "gnuplot",
                "hive",
                "impala-shell",
                "iredis",
                "isql",
                "jshell",
                "lftp",
                "litecli",
                "m",
                "mail",
                "mailx",
                "mariadb",
                "matlab",
                "maxima",
                "mongo",
                "mongosh",
                "mssql-cli",
                "mycli",
                "mysql",
                "mysqlsh",
                "ncftp",
                "nvim",
                "octave",
                "octave-cli",
                "osqueryi",
                "pgcli",
                "presto",
                "psql",
                "r",
                "red",
                "rvim",
                "sage",
                "scala",
                "sftp",
                "smbclient",
                "sqlcmd",
                "sqlite",
                "sqlplus",
                "tftp",
                "trino",
                "tsql",
                "usql",
                "vi",
                "view",
                "vim",
                "vim.basic",
                "vim.gtk",
                "vim.nox",
                "vim.tiny",
                "vimdiff",
            ],
            "",
            "",
        )
    },
];
