//! Finds positions where an interpreter would execute an argument. Caller values must not be there.
//!
//! Literal code (`-c 'print(1)'`), a literal script or a literal module fixes the program; caller values come after
//! it. If a word may be a script or an option value, it counts as the value, and the search continues.

mod dialect;

use self::dialect::{DATA_MODULES, Dialect, InterpreterOperands, ModuleFlag, RUNNER_SWITCHES, SUBCOMMANDS};
use super::{command, line_states::LineWatcher, report::ManifestReport};
use crate::{Pointer, arg_template::ArgPart, model::Argument};

#[derive(Clone, Copy, PartialEq)]
pub(super) struct Interpreter {
    dialect: &'static Dialect,
    program: ProgramState,
    before: PreviousArgument,
    /// The operands after the program are run too, or opened in a way that can run them.
    runs_operands: bool,
    /// Standard input is run too, because of `-` or `-i`.
    runs_stdin: bool,
}

/// The program, as far as the arguments so far define it.
#[derive(Clone, Copy, Eq, PartialEq)]
enum ProgramState {
    Open,
    /// Literal code was given, and a following script is run too.
    Besides,
    /// Given as literal code. Options may still follow.
    Code,
    /// Named. All following words are its arguments.
    Named,
}

/// The kind of the previous argument.
#[derive(Clone, Copy, Eq, PartialEq)]
enum PreviousArgument {
    Nothing,
    /// An option that may take this argument as its value.
    Option,
    CodeFlag,
    /// `-m`, which a Python module follows.
    ModuleFlag,
}

impl Interpreter {
    /// The interpreter of a program family: `python3.12` is a `python`.
    pub fn of_family(family: &str) -> Option<Self> {
        Some(Self {
            dialect: Dialect::of_family(family)?,
            program: ProgramState::Open,
            before: PreviousArgument::Nothing,
            runs_operands: false,
            runs_stdin: false,
        })
    }
}

impl LineWatcher for Interpreter {
    fn stdin(&self, at: &Pointer, report: &mut ManifestReport<'_>) {
        let is_open =
            self.program == ProgramState::Open || self.dialect.operands == InterpreterOperands::Code;
        if is_open || self.runs_stdin {
            self.refuse(at, report);
        }
    }

    fn argument(&mut self, argument: &Argument, at: &Pointer, report: &mut ManifestReport<'_>) {
        if self.program == ProgramState::Named && !self.runs_operands {
            return;
        }
        let before = std::mem::replace(&mut self.before, PreviousArgument::Nothing);
        match argument.template.parts() {
            [] => {}
            [ArgPart::Literal(text)] => self.literal(text, before, at, report),
            [first, ..] => {
                let is_option = argument.may_be_option
                    || matches!(first, ArgPart::Literal(start) if start.starts_with('-'));
                if self.awaits_script()
                    || self.runs_operands
                    || before != PreviousArgument::Nothing
                    || is_option
                {
                    self.refuse(at, report);
                } else {
                    self.name();
                }
            }
        }
    }
}

impl Interpreter {
    fn literal(
        &mut self,
        text: &str,
        before: PreviousArgument,
        at: &Pointer,
        report: &mut ManifestReport<'_>,
    ) {
        if self.program == ProgramState::Named {
            return;
        }
        self.runs_operands |= (self.dialect.runs_operands)(text);
        self.runs_stdin |= self.is_interactive(text);
        match before {
            PreviousArgument::ModuleFlag => self.name_module(text),
            PreviousArgument::CodeFlag if self.dialect.operands == InterpreterOperands::AfterScript => {
                self.program = ProgramState::Besides;
            }
            PreviousArgument::CodeFlag if self.dialect.operands != InterpreterOperands::Code => {
                self.program = ProgramState::Code;
            }
            PreviousArgument::Option if !text.starts_with('-') => {}
            _ if text == "eval" || text == "--eval" || text == "--print" || self.is_code_flag(text) => {
                self.before = PreviousArgument::CodeFlag;
            }
            _ if text == "-" && self.awaits_script() => {
                self.runs_stdin = true;
                self.name();
            }
            _ if SUBCOMMANDS.contains(&text) => {}
            _ if text == "-m" && self.dialect.module_flag == ModuleFlag::Python => {
                self.before = PreviousArgument::ModuleFlag;
            }
            _ if matches!(text, "--" | "-m" | "-jar") || self.is_plain_flag(text) => {}
            _ if text.starts_with('-') && text.contains('=') => {}
            // `-Xmx64m` includes its value.
            _ if text.starts_with("-X") && text.len() > "-X".len() => {}
            _ if self.dialect.operands == InterpreterOperands::Inner && RUNNER_SWITCHES.contains(&text) => {}
            _ if text.starts_with('-') => self.before = PreviousArgument::Option,
            // `view` after `npm` shows a package. It is not the editor.
            _ if self.dialect.operands == InterpreterOperands::Inner && text != "view" => {
                self.name_inner(text, at, report);
            }
            _ => self.name(),
        }
    }

    /// A module that is not in `DATA_MODULES` may run its operands and its standard input.
    fn name_module(&mut self, module: &str) {
        let runs_more = !DATA_MODULES.contains(&module);
        self.runs_operands |= runs_more;
        self.runs_stdin |= runs_more;
        self.program = ProgramState::Named;
    }

    /// Reads the program of a runner: `tsx@4`, `python==3.12`, `@scope/tool`.
    fn name_inner(&mut self, text: &str, at: &Pointer, report: &mut ManifestReport<'_>) {
        let name = text.rsplit('/').next().unwrap_or_default();
        let program = name.split(['@', '=', '<', '>', '~', '!', '[']).next().unwrap_or_default();
        if command::starts_others(program) {
            report.add(
                at,
                format!("`{program}` starts other programs: it would run what the agent writes"),
                "name the program itself",
            );
        }
        match Self::of_family(&command::family(program)) {
            Some(inner) if self.program == ProgramState::Open => self.dialect = inner.dialect,
            _ => self.name(),
        }
    }

    /// Handles a word that is not an option: the program itself, or a word after literal code.
    fn name(&mut self) {
        self.program = match self.dialect.operands {
            InterpreterOperands::Data | InterpreterOperands::AfterScript | InterpreterOperands::Inner => {
                ProgramState::Named
            }
            InterpreterOperands::Permuted => ProgramState::Code,
            InterpreterOperands::Code => ProgramState::Open,
        };
    }

    /// Whether the next word that is not an option would be run.
    fn awaits_script(&self) -> bool {
        matches!(self.program, ProgramState::Open | ProgramState::Besides)
    }

    /// `-i` or `inspect`, after which commands are read. `-i` means something else to `sed`.
    fn is_interactive(&self, text: &str) -> bool {
        let Dialect { code, plain, operands, .. } = self.dialect;
        let letters = text.strip_prefix('-').unwrap_or_default();
        let are_known = letters.chars().all(|letter| plain.contains(letter) || code.contains(letter));
        *operands != InterpreterOperands::Permuted
            && ((are_known && letters.contains('i')) || matches!(text, "--interactive" | "inspect"))
    }

    /// `-c`, `-e`, and clusters such as `-ne`.
    fn is_code_flag(&self, text: &str) -> bool {
        let Some(letters) = text.strip_prefix('-').filter(|letters| (1..=4).contains(&letters.len())) else {
            return false;
        };
        letters.ends_with(|last| self.dialect.code.contains(last))
    }

    fn refuse(&self, at: &Pointer, report: &mut ManifestReport<'_>) {
        let remedy = match self.dialect.operands {
            InterpreterOperands::Code => {
                "write the arguments out: this program reads commands in all of them"
            }
            _ if self.runs_operands && !self.runs_stdin => {
                "pass it on `stdin`, or to a script that opens it itself"
            }
            InterpreterOperands::Data
            | InterpreterOperands::AfterScript
            | InterpreterOperands::Permuted
            | InterpreterOperands::Inner => "name a script first, and pass parameters to it after its name",
        };
        report.add(at, "the interpreter would run what the caller writes here", remedy);
    }

    fn is_plain_flag(&self, text: &str) -> bool {
        let letters = text.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|letter| self.dialect.plain.contains(letter))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[track_caller]
    fn check(command: &str, args: &[&str], is_sound: bool) {
        check_cli(&json!({ "command": command, "args": args }), is_sound);
    }

    /// A caller value on standard input.
    #[track_caller]
    fn check_stdin(command: &str, args: &[&str], is_sound: bool) {
        check_cli(&json!({ "command": command, "args": args, "stdin": "{x}" }), is_sound);
    }

    #[track_caller]
    fn check_cli(cli: &Value, is_sound: bool) {
        let document = json!({
            "name": "x",
            "classification": "read",
            "params": [{ "name": "x", "type": "STRING", "required": true, "testValue": "a" }],
            "handler": { "cli": cli },
        });
        let file = crate::check_text(&document.to_string(), crate::Format::Json);
        let errors: Vec<_> =
            file.tools.iter().flat_map(|tool| &tool.findings).filter(|f| f.is_error()).collect();
        assert_eq!(errors.is_empty(), is_sound, "{cli} {errors:?}");
    }

    #[test]
    fn caller_values_after_the_program_are_accepted() {
        check("python3", &["script.py", "{x}"], true);
        check("python3", &["-I", "-u", "script.py", "-c", "{x}"], true);
        check("python3", &["-c", "print(1)", "{x}"], true);
        check("python3", &["-m", "json.tool", "{x}"], true);
        check("awk", &["-F", ":", "{{print $1}}", "{x}"], true);
        check("node", &["--max-old-space-size=64", "tool.js", "--name={x}"], true);
        check("deno", &["run", "tool.ts", "{x}"], true);
        check("perl", &["-e", "print 1", "{x}"], true);
        check("lua", &["-e", "n = 1", "tool.lua", "{x}"], true);
        check("npx", &["-y", "prettier", "{x}"], true);
    }

    #[test]
    fn perl_two_argument_open_of_caller_values_is_rejected() {
        for flags in [
            &["-ne", "print"][..],
            &["-pe", "s/a/b/"],
            &["-lane", "print"],
            &["-n", "-e", "print"],
            &["-e", "print", "-p"],
            &["-F:", "-e", "print"],
            &["-00ne", "print"],
            &["-n", "tool.pl"],
            &["-p", "--", "tool.pl"],
            &["-e", "print while <>"],
            &["-e", "print while <ARGV>"],
            &["-e", "print readline"],
            &["-e", "print readline(*ARGV)"],
            &["-e", "print ARGV->getline"],
            &["-e", "my $f = \\*ARGV; print <$f>"],
            &["-e", "print 1 unless eof ( )"],
            &["-eprint<>", "a"],
            &["-i", "-pe", "s/a/b/"],
            &["-pi.bak", "-e", "s/a/b/"],
            &["-dne", "print"],
        ] {
            check("perl", &[flags, &["{x}"]].concat(), false);
            check("perl", &[flags, &["fixed.txt", "{x}"]].concat(), false);
            check("perl", &[flags, &["--", "data/{x}"]].concat(), false);
        }
        check("perl", &["-MPOSIX::pan", "-e", "print 1", "{x}"], true);
        check("perl", &["-e", "while (<<>>) {{ print }}", "{x}"], true);
        check("perl", &["-e", "print while <STDIN>", "{x}"], true);
        check("perl", &["-e", "print $ARGV[0], $#ARGV, @ARGV", "{x}"], true);
        check("perl", &["-d:Trace", "-e", "print 1", "{x}"], true);
        check("ruby", &["-ne", "print", "{x}"], true);
    }

    #[test]
    fn caller_values_run_beside_the_program_are_rejected() {
        check("deno", &["test", "a.ts", "{x}"], false);
        check("node", &["--test", "a.js", "b.js", "{x}"], false);
        check("lua", &["-e", "n = 1", "{x}"], false);
        check("guile", &["-e", "main", "{x}"], false);
        check("npx", &["-y", "{x}"], false);
        check("uv", &["tool", "run", "{x}"], false);
        check("tsx", &["watch", "{x}"], false);
    }

    #[test]
    fn stdin_is_data_if_the_program_is_fixed() {
        check_stdin("python3", &["tool.py"], true);
        check_stdin("python3", &["-c", "print(1)"], true);
        check_stdin("lua", &["-e", "print(#io.read('a'))"], true);
        check_stdin("sed", &["-n", "p", "-"], true);
        check_stdin("sed", &["-i", "p", "notes.txt"], true);
        check_stdin("uv", &["run", "tool.py"], true);
        for (command, args) in [
            ("python3", &["-"][..]),
            ("python3", &[]),
            ("python3", &["-", "a", "b"]),
            ("python3", &["-i", "tool.py"]),
            ("python3", &["-ic", "print(1)"]),
            ("node", &["--interactive", "-e", "1"]),
            ("uv", &["run", "-"]),
            ("uv", &["run", "python"]),
            ("lua", &["-i", "-e", "n = 1"]),
            ("lua", &["-e", "n = 1", "-"]),
            ("lua", &["-l", "a"]),
            ("guile", &["-e", "main"]),
        ] {
            check_stdin(command, args, false);
        }
        check("lua", &["-e", "n = 1", "-e", "{x}"], false);
    }

    #[test]
    fn interpreter_started_by_a_runner_is_checked() {
        for (command, args) in [
            ("uv", &["run", "python", "-c"][..]),
            ("uv", &["run", "--with", "a", "--isolated", "python3.12", "-c"]),
            ("uv", &["run", "--isolated", "node", "--test", "a.js", "b.js"]),
            ("uv", &["run", "--no-group", "dev", "perl", "-e"]),
            ("uvx", &["python", "-c"]),
            ("uvx", &["python@3.12", "-c"]),
            ("npx", &["-y", "tsx"]),
            ("npx", &["--yes", "tsx@4.1"]),
            ("npx", &["-p", "tsx", "tsx"]),
            ("bun", &["x", "tsx"]),
            ("bun", &["run", "ts-node", "-e"]),
            ("uv", &["run", "npx", "tsx"]),
            ("uv", &["run", "bash", "-c"]),
            ("uv", &["run", "/usr/bin/env", "a=b"]),
            ("uvx", &["litecli", "a.db"]),
        ] {
            check(command, &[args, &["{x}"]].concat(), false);
        }
        check("uv", &["run", "python", "tool.py", "{x}"], true);
        check("uv", &["run", "--python", "python3.12", "tool.py", "{x}"], true);
        check("uv", &["run", "tool.py", "-c", "{x}"], true);
        check("uvx", &["ruff@0.5", "check", "{x}"], true);
        check("npx", &["--yes", "tsx", "tool.ts", "{x}"], true);
        check("bun", &["run", "tool.ts", "{x}"], true);
    }

    #[test]
    fn fixed_script_may_take_files() {
        check("sed", &["-n", "1,5p", "{x}"], true);
        check("sed", &["-ne", "/a=b/p", "--", "{x}"], true);
        check("awk", &["$1 == 2", "{x}"], true);
        check("sed", &["{x}", "notes.txt"], false);
        check("sed", &["-n", "/{x}/p", "notes.txt"], false);
        check("sed", &["-e", "p", "-e", "{x}"], false);
        // It accepts options after the script too.
        check("sed", &["p", "-f", "{x}"], false);
        check("sed", &["p", "notes.txt", "--expression={x}"], false);
    }

    #[test]
    fn caller_values_for_editors_and_command_readers_are_rejected() {
        let editors = ["ed", "ex", "vi", "vim", "nvim", "view", "emacs", "vim.basic"];
        let databases = ["sqlite3", "psql", "mysql", "mariadb", "duckdb", "mongosh"];
        for command in ["dc", "m4", "jshell", "scala", "gnuplot"].iter().chain(&editors).chain(&databases) {
            check(command, &["fixed", "{x}"], false);
            check(command, &["-e", "fixed", "{x}"], false);
            check(command, &["{x}"], false);
        }
    }

    #[test]
    fn caller_value_in_program_position_is_rejected() {
        check("python3", &["{x}"], false);
        check("python3", &["-W", "ignore", "{x}"], false);
        check("node", &["-r", "a.js", "{x}"], false);
        check("perl", &["-I", "lib", "{x}"], false);
        check("perl", &["-e", "1", "-e{x}"], false);
        check("php", &["-r", "{x}"], false);
    }

    #[test]
    fn only_data_modules_take_caller_values() {
        for module in
            ["timeit", "pdb", "cProfile", "runpy", "unittest", "pytest", "pickle", "code", "own.tool"]
        {
            check("python3", &["-m", module, "{x}"], false);
            check("python3", &["-m", module, "fixed", "--", "{x}"], false);
            check("uv", &["run", "-m", module, "{x}"], false);
            check_stdin("python3", &["-m", module], false);
        }
        check("python3", &["-mtimeit", "{x}"], false);
        check("python3", &["-Im", "timeit", "{x}"], false);
        let maybe = json!({ "when": "x", "args": ["-m"] });
        check_cli(&json!({ "command": "python3", "args": [maybe, "timeit", "{x}"] }), false);
        check("python3", &["-I", "-m", "json.tool", "--indent", "2", "{x}"], true);
        check("python3", &["-m", "zipfile", "-l", "{x}"], true);
        check_stdin("python3", &["-m", "json.tool"], true);
    }

    #[test]
    fn versioned_interpreter_names_are_recognized() {
        for python in ["python3-dbg", "python3.12-dbg", "python3.13t", "python-static", "/usr/bin/pypy3-c"] {
            check(python, &["-c", "{x}"], false);
            check(python, &["tool.py", "{x}"], true);
        }
        check("perl5.36-x86_64-linux-gnu", &["-e", "{x}"], false);
        check("php8.2-cgi", &["{x}"], false);
        check("sqlite3-static", &["a.db", "{x}"], false);
        // Programs of the author with similar names.
        check("view-report", &["{x}"], true);
        check("pythonic", &["-c", "{x}"], true);
    }

    #[test]
    fn subcommands_that_run_programs_are_checked() {
        for (command, args) in [
            ("go", &["run"][..]),
            ("go", &["run", "main.go"]),
            ("go", &["test"]),
            ("java", &[]),
            ("java", &["-jar"]),
            ("java", &["-cp"]),
            ("runghc", &[]),
            ("npm", &["exec", "--"]),
            ("npm", &["exec", "--", "tsx"]),
            ("npm", &["--silent", "exec", "--"]),
            ("npm", &["init"]),
            ("npm", &["run"]),
            ("pnpm", &["dlx"]),
            ("pnpm", &[]),
            ("yarn", &["dlx", "tsx"]),
            ("deno", &["task"]),
            ("node", &["inspect"]),
            ("poetry", &["run"]),
            ("bundle", &["exec", "ruby", "-e"]),
            ("redis-cli", &[]),
            ("redis-cli", &["-h", "cache", "EVAL"]),
        ] {
            check(command, &[args, &["{x}"]].concat(), false);
        }
        check("go", &["run", ".", "{x}"], true);
        check("go", &["doc", "{x}"], true);
        check("java", &["-Xmx64m", "-Da=b", "-cp", "lib", "Main", "{x}"], true);
        check("java", &["-jar", "tool.jar", "{x}"], true);
        check("npm", &["view", "{x}"], true);
        check("npm", &["exec", "--", "prettier", "{x}"], true);
        check("npm", &["run", "report", "--", "{x}"], true);
        check("node", &["inspect.js", "{x}"], true);
        check("redis-cli", &["-h", "cache", "GET", "{x}"], true);
    }

    #[test]
    fn caller_text_on_stdin_of_command_readers_is_rejected() {
        for (command, args) in [
            ("sftp", &["host"][..]),
            ("sftp", &["-b", "-", "host"]),
            ("lftp", &["host"]),
            ("smbclient", &["//host/share"]),
            ("crontab", &["-"]),
            ("redis-cli", &[]),
            ("node", &["inspect", "tool.js"]),
            ("irb", &[]),
            ("cqlsh", &["host"]),
        ] {
            check_stdin(command, args, false);
        }
        check("sftp", &["-b", "{x}", "host"], false);
        check("crontab", &["{x}"], false);
        check_stdin("redis-cli", &["-x", "SET", "a"], true);
    }

    #[test]
    fn option_like_value_after_literal_code_is_rejected() {
        let file = crate::check_text(
            "{name: x, classification: read, params: [{name: x, type: STRING, required: true, testValue: a}], \
             handler: {cli: {command: perl, args: ['-e', '1', {value: '{x}', allowOption: true}]}}}",
            crate::Format::Yaml,
        );
        let messages: Vec<_> =
            file.tools.iter().flat_map(|tool| &tool.findings).map(|f| &f.message).collect();
        assert!(messages.iter().any(|message| message.contains("interpreter would run")), "{messages:?}");
    }
}
