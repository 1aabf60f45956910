//! Detects remote shells on standard input: `ssh host` without a command starts a shell that runs its input.

use super::{command, interpreter::Interpreter, line_states::LineWatcher, report::ManifestReport};
use crate::{Pointer, arg_template::ArgPart, model::Argument};

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) struct RemoteShell {
    awaits: Awaits,
    /// The previous argument is an option that takes this one as its value.
    is_value: bool,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Awaits {
    Host,
    Command,
    /// A command was named that is not a shell.
    Nothing,
    /// A word of the command may be a shell, or is a caller value.
    NoWord,
}

impl RemoteShell {
    pub fn of_family(family: &str) -> Option<Self> {
        let is_one = ["autossh", "dbclient", "plink", "rsh", "slogin", "ssh"].contains(&family);
        is_one.then_some(Self { awaits: Awaits::Host, is_value: false })
    }
}

impl LineWatcher for RemoteShell {
    fn argument(&mut self, argument: &Argument, _at: &Pointer, _report: &mut ManifestReport<'_>) {
        let is_value = std::mem::replace(&mut self.is_value, false);
        let literal = match argument.template.parts() {
            [ArgPart::Literal(text)] => Some(text.as_str()),
            _ => None,
        };
        match (self.awaits, literal) {
            (Awaits::Host, _) if is_value => {}
            // Options may come before the host and directly after it.
            (Awaits::Host | Awaits::Command, Some(option)) if option.starts_with('-') => {
                self.is_value = takes_next(option);
            }
            (Awaits::Command, _) if is_value => {}
            (Awaits::Host, _) => self.awaits = Awaits::Command,
            (Awaits::Command | Awaits::Nothing, Some(words)) if is_harmless(words) => {
                self.awaits = Awaits::Nothing;
            }
            // Data for the named command.
            (Awaits::Nothing, None) => {}
            (Awaits::Command | Awaits::Nothing | Awaits::NoWord, _) => self.awaits = Awaits::NoWord,
        }
    }

    fn stdin(&self, at: &Pointer, report: &mut ManifestReport<'_>) {
        if self.awaits != Awaits::Nothing {
            report.add(
                at,
                "a remote shell would run what the caller writes here",
                "write the remote command after the host; it must not be a shell or interpreter",
            );
        }
    }
}

/// `-p`, and letters whose last one takes a value: `-Tp`.
fn takes_next(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    letters.find(|letter| VALUES.contains(letter)).is_some_and(|at| at + 1 == letters.len())
}

/// Whether no word of the line starts a shell or an interpreter. The remote shell reads this line.
fn is_harmless(line: &str) -> bool {
    let words = line.split(|c: char| c.is_whitespace() || ";|&()<>`$\"'\\{}=".contains(c));
    let mut words = words.filter(|word| !word.is_empty()).peekable();
    words.peek().is_some()
        && words.all(|word| {
            !command::starts_others(word)
                && Interpreter::of_family(&command::family(word)).is_none()
                && !matches!(word, "." | "eval" | "exec" | "source")
        })
}

const VALUES: &str = "BDEFIJLOPQRSWbceilmopw";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[track_caller]
    fn check(args: &Value, is_sound: bool) {
        for command in ["ssh", "/usr/bin/slogin"] {
            let document = json!({
                "name": "x",
                "classification": "read",
                "params": [{ "name": "x", "type": "STRING", "required": true, "testValue": "a" }],
                "handler": { "cli": { "command": command, "args": args, "stdin": "{x}" } },
            });
            let file = crate::check_text(&document.to_string(), crate::Format::Json);
            let errors: Vec<_> =
                file.tools.iter().flat_map(|tool| &tool.findings).filter(|f| f.is_error()).collect();
            assert_eq!(errors.is_empty(), is_sound, "{command} {args} {errors:?}");
        }
    }

    #[test]
    fn caller_text_for_a_remote_shell_is_rejected() {
        check(&json!(["-T", "host"]), false);
        check(&json!(["host"]), false);
        check(&json!(["-p", "22", "-l", "ann", "host"]), false);
        check(&json!(["-4p", "22", "host"]), false);
        check(&json!(["host", "-T"]), false);
        check(&json!(["host", "sh"]), false);
        check(&json!(["host", "cd /srv && /bin/sh -s"]), false);
        check(&json!(["host", "python3", "-"]), false);
        check(&json!(["host", "sudo", "cat"]), false);
        check(&json!(["host", "cat", "|sh"]), false);
        check(&json!(["host", "$(echo sh)"]), false);
        check(&json!(["host", "{x}"]), false);
        check(&json!(["host", { "when": "x", "args": ["cat"] }]), false);
        check(&json!([{ "when": "x", "args": ["host"] }, "uptime"]), false);
        check(&json!(["host", "cat", { "when": "x", "args": ["| sh"] }]), false);
    }

    #[test]
    fn remote_command_may_read_caller_text() {
        check(&json!(["-T", "host", "cat > notes.txt"]), true);
        check(&json!(["-o", "BatchMode=yes", "-p", "22", "host", "wc", "--lines"]), true);
        check(&json!(["{x}", "cat"]), true);
        check(&json!(["host", "tee", "{x}"]), true);
        check(&json!([{ "when": "x", "args": ["-l", "{x}"] }, "host", "cat"]), true);
    }
}
