//! Table of interpreters: their options, and how they treat the words after the program.

use super::super::command;

pub struct Dialect {
    names: &'static [&'static str],
    /// Letters whose option is followed by code.
    pub code: &'static str,
    /// Letters whose option certainly takes no value.
    pub plain: &'static str,
    pub operands: InterpreterOperands,
    /// Does this word of the author's make it run, or open like a program, what is named after the program?
    pub runs_operands: fn(&str) -> bool,
    /// What `-m` is to it.
    pub module_flag: ModuleFlag,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub enum ModuleFlag {
    /// The next word is a module of python's.
    Python,
    /// The next word is a program like any other.
    Plain,
}

/// What becomes of the words after the program?
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum InterpreterOperands {
    /// They are the program's, also those that look like options.
    Data,
    /// They are the script's, also where code was given before it.
    AfterScript,
    /// They are data, but options are looked for among them.
    Permuted,
    /// They are read for commands too, and so is standard input.
    Code,
    /// They are those of the program that was named, which may be an interpreter itself.
    Inner,
}

impl Dialect {
    /// By its name, or by that of a build: `python3.12-dbg` is a `python`. A program of the author's may begin like an editor's
    /// name (`view-report`), so that those are known by a number only.
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

/// There is one of each.
impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// `ed25519` is no editor.
const SHORTEST_OF_A_BUILD: usize = 3;

/// Words that are followed by the script, not the script.
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

/// Modules of python's that read, write or show what they are given. Others import it, run it or read commands (`timeit`, `pdb`,
/// `unittest`, `pickle`), and of a module that is not here nobody knows: its author names its script.
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

/// Options of runners that take no value, so that the next word is the program.
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

/// `perl -n` and its like open their operands by perl's old rules, by which `id|` is a program to run; so does code that reads
/// them itself. `-a` and `-F` imply `-n`.
fn opens_by_old_rules(text: &str) -> bool {
    // What follows one of these is its value.
    let flags = text.strip_prefix('-').and_then(|letters| letters.split(PERL_VALUES).next());
    flags.is_some_and(|flags| flags.contains(['F', 'a', 'n', 'p'])) || reads_operands(text)
}

/// Code that reads through the handle of perl's operands, under its name or under none. `<<>>` opens files only, and of
/// `@ARGV` and `$ARGV[0]` it is only told their names.
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

/// To these everything that follows is one more file to run.
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

/// Commands of a server of values that are followed by code, or by what decides which code it loads.
fn runs_on_server(text: &str) -> bool {
    ["config", "debug", "eval", "eval_ro", "function", "module", "script"]
        .iter()
        .any(|command| text.eq_ignore_ascii_case(command))
}

/// By family, so `sqlite3` is `sqlite`. Of editors, of clients of databases and of others that read commands from any file
/// or from standard input there is no place where a caller's word is only data. `guile -e` only names what is run of the script
/// that follows, and settles nothing.
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
    // It runs what packages bring along, too.
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
    // They start a program where its packages are.
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
