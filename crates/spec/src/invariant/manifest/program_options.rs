//! Finds options of ordinary programs that name another program, or a file that names programs. Caller values and
//! shells must not be there.

mod takers;

use self::takers::{OF_GIT, Takers, VariableSettings};
use super::{command, interpreter::Interpreter, line_states::LineWatcher, report::ManifestReport};
use crate::{Pointer, arg_template::ArgPart, model::Argument};

#[derive(Clone, Copy, PartialEq)]
pub(super) struct ProgramOptions {
    takers: &'static Takers,
    /// The previous argument was this option, and this argument is its value.
    value_of: Option<&'static str>,
    /// All words so far are options or their values. The subcommand follows.
    is_early: bool,
    /// This argument is the value of an option that names no program.
    is_folder: bool,
    /// Nothing has been read yet.
    is_first: bool,
    /// An option among letters that begin the command line without a dash. Any following word may be its value.
    leading: Option<&'static str>,
    subcommand: Subcommand,
    /// The interpreter that an option starts, until its command line ends.
    inner: Option<Interpreter>,
    stdin: Stdin,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Subcommand {
    /// Not read yet, or chosen by callers.
    Any,
    /// Written by the author.
    Known(&'static str),
    /// Written by the author, and without options in the table.
    Other,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Stdin {
    Data,
    /// It is read as a file that names programs.
    Programs,
}

impl ProgramOptions {
    pub fn of_family(family: &str) -> Option<Self> {
        Some(Self {
            takers: Takers::of_family(family)?,
            value_of: None,
            is_early: true,
            is_folder: false,
            is_first: true,
            leading: None,
            subcommand: Subcommand::Any,
            inner: None,
            stdin: Stdin::Data,
        })
    }
}

impl LineWatcher for ProgramOptions {
    fn argument(&mut self, argument: &Argument, at: &Pointer, report: &mut ManifestReport<'_>) {
        let parts = argument.template.parts();
        if let Some(inner) = &mut self.inner {
            if matches!(parts, [ArgPart::Literal(text)] if self.takers.line_ends.contains(&text.as_str())) {
                self.inner = None;
            } else {
                inner.argument(argument, at, report);
            }
            return;
        }
        let value_of = self.value_of.take();
        let is_first = std::mem::replace(&mut self.is_first, false);
        match (parts, value_of) {
            ([], _) => {}
            ([ArgPart::Literal(text)], Some(option)) => self.value(option, text, at, report),
            ([ArgPart::Literal(text)], None) => {
                self.leading = self.leading.or(self.among_letters(text).filter(|_| is_first));
                self.literal(text, at, report);
            }
            ([first, ..], _) => {
                let start = if let ArgPart::Literal(text) = first { text.as_str() } else { "" };
                let chosen =
                    value_of.or(self.leading).map(|option| (option, start)).or_else(|| self.taken(start));
                if chosen.is_some_and(|(option, start)| !self.is_data(option, start)) {
                    refuse(at, report);
                }
                if self.takers.settings == VariableSettings::Code
                    && !start.starts_with('-')
                    && start.contains('=')
                {
                    report.add(
                        at,
                        "the program looks for code in the value of a variable, and the caller would write it",
                        "pass it in `env`, and read it in a recipe as `$$NAME`",
                    );
                }
                let is_option = argument.may_be_option || start.starts_with('-');
                self.is_early &= value_of.is_some() || self.is_folder || is_option;
                self.is_folder = false;
            }
        }
    }

    fn stdin(&self, at: &Pointer, report: &mut ManifestReport<'_>) {
        if self.stdin == Stdin::Programs {
            refuse(at, report);
        }
    }
}

impl ProgramOptions {
    fn value(&mut self, option: &str, text: &str, at: &Pointer, report: &mut ManifestReport<'_>) {
        if self.takers.files.contains(&option) {
            if matches!(text, "-" | "/dev/stdin") {
                self.stdin = Stdin::Programs;
            }
        } else {
            self.program(text, at, report);
        }
    }

    /// Checks a literal program that an option starts.
    fn program(&mut self, text: &str, at: &Pointer, report: &mut ManifestReport<'_>) {
        if command::starts_others(text) {
            refuse(at, report);
        }
        if !self.takers.line_ends.is_empty() {
            self.inner = Interpreter::of_family(&command::family(text));
        }
    }

    fn literal(&mut self, text: &str, at: &Pointer, report: &mut ManifestReport<'_>) {
        match self.taken(text) {
            Some((option, "")) => self.value_of = Some(option),
            Some((option, value)) => self.value(option, value, at, report),
            None => {}
        }
        if self.is_early && !self.is_folder && !text.starts_with('-') {
            self.is_early = false;
            self.subcommand = self.takers.subcommand(text).map_or(Subcommand::Other, Subcommand::Known);
        }
        self.is_folder = self.is_early && OF_GIT.contains(&text);
        let mut lines = self.takers.lines.iter().filter(|(of, _)| self.is_meant(of));
        self.leading = self.leading.or(lines.find(|(_, word)| *word == text).map(|(_, word)| *word));
    }

    /// Whether this may be the subcommand.
    fn is_meant(&self, subcommand: &str) -> bool {
        match self.subcommand {
            Subcommand::Any => true,
            Subcommand::Known(given) => given == subcommand,
            Subcommand::Other => false,
        }
    }

    fn options(&self) -> impl Iterator<Item = &'static str> {
        let early = if self.is_early { self.takers.early } else { &[] };
        let late = self.takers.late.iter().filter(|(of, _)| self.is_meant(of)).map(|(_, option)| option);
        self.takers.options.iter().chain(self.takers.files).chain(early).chain(late).copied()
    }

    /// The option in a word, and the part of its value in the same word: `--rsh=…`, `-e…`, `-aze…`.
    fn taken<'t>(&self, text: &'t str) -> Option<(&'static str, &'t str)> {
        let (word, value) = text.split_once('=').unwrap_or((text, ""));
        let written_out = self.options().find_map(|option| {
            let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
            let value = match letter {
                Some(letter) => self.after_letter(text, letter)?,
                None => Some(value).filter(|_| word == option)?,
            };
            Some((option, value))
        });
        written_out.or_else(|| Some((self.abbreviated(word)?, value)))
    }

    /// `--to-comm`: many programs accept the beginning of a long option.
    fn abbreviated(&self, word: &str) -> Option<&'static str> {
        let is_short =
            word.len() > "--".len() && word.starts_with("--") && !self.takers.others.contains(&word);
        self.options().find(|option| is_short && option.starts_with(word))
    }

    fn after_letter<'t>(&self, text: &'t str, letter: &str) -> Option<&'t str> {
        let (before, value) = text.strip_prefix('-')?.split_once(letter)?;
        before.chars().all(|switch| self.takers.switches.contains(switch)).then_some(value)
    }

    fn among_letters(&self, text: &str) -> Option<&'static str> {
        let are_letters =
            self.takers.leads_with_letters && text.chars().all(|letter| letter.is_ascii_alphabetic());
        self.options().find(|option| {
            let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
            are_letters && letter.is_some_and(|letter| text.contains(letter))
        })
    }

    fn is_data(&self, option: &str, start: &str) -> bool {
        let (of_data, settings) = self.takers.data;
        option == of_data && settings.iter().any(|setting| setting.eq_ignore_ascii_case(start))
    }
}

fn refuse(at: &Pointer, report: &mut ManifestReport<'_>) {
    report.add(
        at,
        "this argument names a program to start, and must be fixed by the author",
        "write the program out; it must not be a shell",
    );
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[track_caller]
    fn check(command: &str, args: &[&str], is_sound: bool) {
        check_groups(command, &json!(args), is_sound);
    }

    #[track_caller]
    fn check_groups(command: &str, args: &Value, is_sound: bool) {
        check_cli(&json!({ "command": command, "args": args }), is_sound);
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
    fn caller_cannot_choose_a_program_option() {
        check("find", &[".", "-exec", "{x}", ";"], false);
        check("find", &[".", "-exec", "sh", "-c", "{x}", ";"], false);
        check("find", &[".", "-execdir", "/usr/bin/env", "{x}", ";"], false);
        check("tar", &["-xf", "a.tar", "--to-command={x}"], false);
        check("tar", &["-xf", "a.tar", "-I{x}"], false);
        check("tar", &["-xf", "a.tar", "-I", "{x}"], false);
        check("/usr/bin/sort", &["--compress-program", "{x}", "a"], false);
        check("ssh", &["-o", "{x}", "host"], false);
        check("rsync", &["-e", "ssh {x}", "a", "b"], false);
        check("git", &["-c", "{x}", "log"], false);
        check("git", &["-C", "folder", "-c", "{x}", "log"], false);
        check("git", &["fetch", "--upload-pack={x}", "a"], false);
        check("git", &["--no-pager", "-c", "core.pager={x}", "log"], false);
    }

    #[test]
    fn interpreter_started_by_an_option_is_checked() {
        check("find", &[".", "-exec", "python3", "-c", "{x}", ";"], false);
        check("find", &[".", "-exec", "perl", "-e", "{x}", ";"], false);
        check("find", &[".", "-exec", "perl", "-ne", "print", "{x}", ";"], false);
        check("find", &[".", "-exec", "uv", "run", "python", "-c", "{x}", "+"], false);
        check("find", &[".", "-exec", "cat", ";", "-exec", "node", "-e", "{x}", ";"], false);
        check("fd", &["a", "-x", "python3", "-c", "{x}"], false);
        check("fd", &["a", "--exec-batch=python3", "-c", "{x}"], false);
        let start = [json!("."), json!("-exec"), json!("perl")];
        let maybe = json!({ "when": "x", "args": ["-n"] });
        let end = [json!("-e"), json!("print"), json!("{x}"), json!(";")];
        check_groups("find", &Value::from([&start[..], &[maybe], &end].concat()), false);
        let ends_or_not = json!({ "when": "x", "args": [";"] });
        check_groups("find", &Value::from([&start[..], &[ends_or_not], &[json!("{x}")]].concat()), false);
        check("find", &[".", "-exec", "python3", "tool.py", "{x}", ";"], true);
        check("find", &[".", "-exec", "python3", "tool.py", ";", "-name", "{x}"], true);
        check("find", &[".", "-exec", "python3", "-I", ";", "-name", "{x}"], true);
    }

    #[test]
    fn clustered_short_options_are_split() {
        check("rsync", &["-aze", "{x}", "a", "b"], false);
        check("tar", &["-xvI", "{x}", "a"], false);
        check("ssh", &["-4o", "{x}", "host"], false);
        check("nc", &["-lve", "{x}", "1234"], false);
        check("make", &["-sE", "{x}"], false);
        check("wget", &["-qe", "{x}", "http://a"], false);
        check("fd", &["-Hx", "{x}"], false);
        check("git", &["rebase", "-ix", "{x}"], false);
        check("tar", &["xIf", "{x}", "a.tar"], false);
        check("tar", &["xfI", "a.tar", "{x}"], false);
        let maybe = json!({ "when": "x", "args": ["-v"] });
        check_groups("tar", &json!([maybe, "xIf", "{x}", "a.tar"]), false);
        check("tar", &["xzf", "{x}"], true);
        check("tar", &["-xf", "INDEX", "{x}"], true);
        check("rsync", &["-az", "{x}", "b"], true);
        check("tar", &["-xzf", "{x}"], true);
        check("ssh", &["-lmarco", "{x}", "uptime"], true);
        check("wget", &["-Opage", "{x}"], true);
    }

    #[test]
    fn abbreviated_long_options_are_recognized() {
        check("tar", &["-xf", "a.tar", "--to-comm={x}"], false);
        check("tar", &["-xf", "a.tar", "--to-comm", "{x}"], false);
        check("sort", &["--compress-prog={x}", "a"], false);
        check("split", &["--fil={x}", "a"], false);
        check("git", &["fetch", "--upload-p={x}", "a"], false);
        check("make", &["--ev={x}"], false);
        check("make", &["--makef", "{x}"], false);
        check("tar", &["-xf", "a.tar", "--use-comp", "sh"], false);
        check("tar", &["-xf", "a.tar", "--checkpoint={x}"], true);
        check("git", &["send-email", "--to={x}", "--cc", "{x}"], true);
        check("nmap", &["--data", "{x}", "host"], true);
        check("tar", &["-xf", "a.tar", "--", "{x}"], true);
    }

    #[test]
    fn cross_compilers_are_recognized() {
        for compiler in ["c++", "cpp", "c99", "x86_64-linux-gnu-gcc", "aarch64-linux-gnu-g++-12", "clang-15"]
        {
            check(compiler, &["-E", "-wrapper", "{x}", "a.c"], false);
            check(compiler, &["-fplugin={x}", "a.c"], false);
            check(compiler, &["--specs={x}", "a.c"], false);
            check(compiler, &["-E", "{x}"], true);
        }
        check("x86_64-w64-mingw32-gdb", &["{x}"], false);
    }

    #[test]
    fn git_subcommand_decides_option_meaning() {
        check("git", &["rebase", "-x", "{x}"], false);
        check("git", &["difftool", "-x", "{x}"], false);
        check("git", &["clone", "-u", "{x}", "a"], false);
        check("git", &["-C", "{x}", "clone", "-u", "{x}", "a"], false);
        check("git", &["grep", "-O{x}", "a"], false);
        check("git", &["-C", "{x}", "-c", "{x}", "log"], false);
        check("git", &["--git-dir={x}", "-c", "{x}", "log"], false);
        check("git", &["-C", "{x}", "switch", "-c", "{x}"], true);
        check("git", &["cherry-pick", "-x", "{x}"], true);
        check("git", &["push", "-u", "origin", "{x}"], true);
    }

    #[test]
    fn caller_cannot_choose_a_file_that_names_programs() {
        for (command, args) in [
            ("make", &["-f"][..]),
            ("make", &["--makefile"]),
            ("make", &["-C"]),
            ("make", &["-sC"]),
            ("make", &["-I"]),
            ("gmake", &["--directory"]),
            ("cmake", &["-P"]),
            ("ninja", &["-C"]),
            ("curl", &["-K"]),
            ("curl", &["-sK"]),
            ("curl", &["--config"]),
            ("wget", &["--config"]),
            ("nmap", &["--script"]),
            ("git", &["init", "--template"]),
        ] {
            check(command, &[args, &["{x}"]].concat(), false);
        }
        check("make", &["-f{x}"], false);
        check("make", &["--file={x}"], false);
        check("curl", &["--config={x}"], false);
        // Make expands `$(shell …)` in the value of a variable.
        check("make", &["all", "NAME={x}"], false);
        for (command, args) in
            [("make", ["-f", "-"]), ("curl", ["-sK-", "https://a"]), ("make", ["-f/dev/stdin", "a"])]
        {
            check_cli(&json!({ "command": command, "args": args, "stdin": "{x}" }), false);
        }
        check_cli(&json!({ "command": "curl", "args": ["--data", "@-", "https://a"], "stdin": "{x}" }), true);
        check("make", &["-C", "script", "-f", "watch", "{x}"], true);
        check("curl", &["-K", "fixed.conf", "--data", "{x}", "https://a"], true);
    }

    #[test]
    fn git_run_commands_must_be_literal() {
        check("git", &["submodule", "foreach", "{x}"], false);
        check("git", &["submodule", "--quiet", "foreach", "--recursive", "git", "log", "{x}"], false);
        check("git", &["bisect", "run", "{x}"], false);
        check("git", &["-C", "folder", "bisect", "run", "make", "{x}"], false);
        check("git", &["filter-branch", "--tree-filter", "{x}"], false);
        check("git", &["filter-branch", "--msg-filter={x}"], false);
        check("git", &["clone", "-c", "{x}", "a"], false);
        check("git", &["clone", "--config={x}", "a"], false);
        check("git", &["send-email", "--sendmail-cmd={x}", "a"], false);
        check("git", &["submodule", "status", "{x}"], true);
        check("git", &["bisect", "good", "{x}"], true);
        check("git", &["log", "foreach", "{x}"], true);
    }

    #[test]
    fn other_programs_with_program_options_are_checked() {
        check("tcpdump", &["-z", "{x}", "-w", "a"], false);
        check("tcpdump", &["-nz", "{x}"], false);
        check("go", &["build", "-toolexec", "{x}"], false);
        check("go", &["test", "-exec={x}", "."], false);
        check("scp", &["-D", "{x}", "a", "b"], false);
        check("openssl", &["req", "-engine", "{x}"], false);
        check("tcpdump", &["-r", "{x}"], true);
        check("ssh", &["-D", "{x}", "host", "uptime"], true);
    }

    #[test]
    fn harmless_settings_accept_caller_values() {
        check("ssh", &["-o", "ConnectTimeout={x}", "host", "uptime"], true);
        check("ssh", &["-o", "port={x}", "host", "uptime"], true);
        check("git", &["-c", "user.name={x}", "-c", "user.email={x}", "commit"], true);
        check("ssh", &["-o", "ProxyCommand={x}", "host"], false);
        check("ssh", &["-o", "Port{x}", "host"], false);
        check("ssh", &["-F", "Port={x}", "host"], false);
        check("git", &["-c", "alias.user.name={x}", "log"], false);
        check("git", &["fetch", "--upload-pack", "user.name={x}", "a"], false);
    }

    #[test]
    fn values_of_other_options_are_accepted() {
        check("find", &[".", "-name", "{x}"], true);
        check("find", &[".", "-exec", "cat", "{x}", ";"], true);
        check("tar", &["-xf", "a.tar", "--use-compress-program=zstd", "{x}"], true);
        check("git", &["switch", "-c", "{x}"], true);
        check("git", &["-c", "color.ui=never", "log", "{x}"], true);
        check("ssh", &["-o", "BatchMode=yes", "{x}", "uptime"], true);
    }
}
