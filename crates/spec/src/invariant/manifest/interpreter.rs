//! Where would an interpreter take an argument for a program? What a caller fills in must not stand there.
//!
//! The program is settled by literal code (`-c 'print(1)'`), a literal script or a literal module. Everything a
//! caller fills in comes after that. Where it is uncertain whether a word is a script or the value of an option,
//! it is taken for the value, and the search goes on.

use super::report::Report;
use crate::{
    Pointer,
    arg_template::ArgPart,
    model::{Argument, ArgumentGroup},
};

pub(super) struct Interpreter {
    dialect: &'static Dialect,
    program: Program,
    before: Before,
}

/// What is known of the program so far.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Program {
    Open,
    /// Given as literal code; options may still follow.
    Code,
    /// Named; all that follows are arguments to it.
    Named,
}

/// What the argument just before was.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Before {
    Nothing,
    /// An option that may take this argument for its value.
    Option,
    CodeFlag,
}

struct Dialect {
    names: &'static [&'static str],
    /// Letters whose option is followed by code.
    code: &'static str,
    /// Letters whose option certainly takes no value.
    plain: &'static str,
}

impl Interpreter {
    /// By family: `python3.12` is a `python`.
    pub fn of_family(family: &str) -> Option<Self> {
        let dialect = DIALECTS.iter().find(|dialect| dialect.names.contains(&family))?;
        Some(Self { dialect, program: Program::Open, before: Before::Nothing })
    }

    pub fn group(&mut self, group: &ArgumentGroup, at: &Pointer, report: &mut Report<'_>) {
        match group {
            ArgumentGroup::One(one) => self.argument(one, &report.text_of(at), report),
            ArgumentGroup::When { args, .. } | ArgumentGroup::Each { args, .. } => {
                // What may be absent does not settle which program runs.
                let program = self.program;
                for (index, one) in args.iter().enumerate() {
                    let at = report.text_of(&at.key("args").index(index));
                    self.argument(one, &at, report);
                }
                self.program = program;
                self.before = Before::Nothing;
            }
        }
    }

    pub fn stdin(&self, at: &Pointer, report: &mut Report<'_>) {
        if self.program == Program::Open {
            refuse(at, report);
        }
    }

    fn argument(&mut self, argument: &Argument, at: &Pointer, report: &mut Report<'_>) {
        if self.program == Program::Named {
            return;
        }
        let before = std::mem::replace(&mut self.before, Before::Nothing);
        match argument.template.parts() {
            [] => {}
            [ArgPart::Literal(text)] => self.literal(text, before),
            [first, ..] => {
                let is_option = matches!(first, ArgPart::Literal(start) if start.starts_with('-'));
                if self.program == Program::Open || before != Before::Nothing || is_option {
                    refuse(at, report);
                } else {
                    self.program = Program::Named;
                }
            }
        }
    }

    fn literal(&mut self, text: &str, before: Before) {
        match before {
            Before::CodeFlag => self.program = Program::Code,
            Before::Option if !text.starts_with('-') => {}
            _ if text == "eval" || text == "--eval" || text == "--print" || self.is_code_flag(text) => {
                self.before = Before::CodeFlag;
            }
            _ if SUBCOMMANDS.contains(&text) => {}
            _ if matches!(text, "--" | "-m") || self.is_plain_flag(text) || text.contains('=') => {}
            _ if text.starts_with('-') => self.before = Before::Option,
            _ => self.program = Program::Named,
        }
    }

    /// `-c`, `-e`, and clusters such as `-ne`.
    fn is_code_flag(&self, text: &str) -> bool {
        let Some(letters) = text.strip_prefix('-').filter(|letters| (1..=4).contains(&letters.len())) else {
            return false;
        };
        letters.ends_with(|last| self.dialect.code.contains(last))
    }

    fn is_plain_flag(&self, text: &str) -> bool {
        let letters = text.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|letter| self.dialect.plain.contains(letter))
    }
}

fn refuse(at: &Pointer, report: &mut Report<'_>) {
    report.say(
        at,
        "the interpreter would run what the caller writes here",
        "name a script first, and pass parameters to it after its name",
    );
}

/// Words that are followed by the script, not the script.
const SUBCOMMANDS: [&str; 6] = ["exec", "repl", "run", "serve", "test", "x"];

const DIALECTS: [Dialect; 8] = [
    Dialect { names: &["pypy", "python", "pythonw"], code: "c", plain: "BEIOPSbdiqsuvx" },
    Dialect { names: &["perl"], code: "eE", plain: "aclnpstTuUwWX" },
    Dialect { names: &["ruby", "jruby"], code: "e", plain: "alnpsSvwy" },
    Dialect { names: &["php"], code: "rRBE", plain: "nqs" },
    Dialect { names: &["lua", "luajit"], code: "e", plain: "EivW" },
    Dialect { names: &["bun", "deno", "node", "nodejs", "ts-node", "tsx"], code: "ep", plain: "i" },
    Dialect { names: &["awk", "gawk", "mawk", "nawk"], code: "", plain: "" },
    Dialect {
        names: &["elixir", "groovy", "guile", "jshell", "julia", "osascript", "rscript", "scala", "tclsh"],
        code: "eE",
        plain: "",
    },
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[track_caller]
    fn check(command: &str, args: &[&str], is_sound: bool) {
        let document = json!({
            "name": "x",
            "classification": "read",
            "params": [{ "name": "x", "type": "STRING", "required": true, "testValue": "a" }],
            "handler": { "cli": { "command": command, "args": args } },
        });
        let file = crate::check_text(&document.to_string(), crate::Format::Json);
        let errors: Vec<_> =
            file.tools.iter().flat_map(|tool| &tool.findings).filter(|f| f.is_error()).collect();
        assert_eq!(errors.is_empty(), is_sound, "{command} {args:?} {errors:?}");
    }

    #[test]
    fn parameters_come_after_the_program() {
        check("python3", &["script.py", "{x}"], true);
        check("python3", &["-I", "-u", "script.py", "-c", "{x}"], true);
        check("python3", &["-c", "print(1)", "{x}"], true);
        check("python3", &["-m", "json.tool", "{x}"], true);
        check("awk", &["-F", ":", "{{print $1}}", "{x}"], true);
        check("node", &["--max-old-space-size=64", "tool.js", "--name={x}"], true);
        check("deno", &["run", "tool.ts", "{x}"], true);
        check("perl", &["-ne", "print", "{x}"], true);
    }

    #[test]
    fn what_could_be_the_program_is_not_for_the_caller() {
        check("python3", &["{x}"], false);
        check("python3", &["-W", "ignore", "{x}"], false);
        check("node", &["-r", "a.js", "{x}"], false);
        check("perl", &["-I", "lib", "{x}"], false);
        check("perl", &["-e", "1", "-e{x}"], false);
        check("php", &["-r", "{x}"], false);
    }
}
