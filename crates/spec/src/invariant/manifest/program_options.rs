//! Which options of ordinary programs name another program to run? What a caller fills in must not stand there, nor a shell.

use super::{command, report::Report};
use crate::{
    Pointer,
    arg_template::ArgPart,
    model::{Argument, ArgumentGroup},
};

pub(super) struct ProgramOptions {
    takers: &'static Takers,
    /// The argument just before was such an option; this one is its value.
    is_value: bool,
    /// No word has been read yet that is neither an option nor the value of one: the subcommand is still to come.
    is_early: bool,
    /// The value of an option that names no program.
    is_folder: bool,
}

struct Takers {
    names: &'static [&'static str],
    options: &'static [&'static str],
    /// Those that mean it before the subcommand only.
    early: &'static [&'static str],
}

impl ProgramOptions {
    pub fn of_family(family: &str) -> Option<Self> {
        let takers = TAKERS.iter().find(|takers| takers.names.contains(&family))?;
        Some(Self { takers, is_value: false, is_early: true, is_folder: false })
    }

    pub fn group(&mut self, group: &ArgumentGroup, at: &Pointer, report: &mut Report<'_>) {
        match group {
            ArgumentGroup::One(one) => self.argument(one, &report.text_of(at), report),
            ArgumentGroup::When { args, .. } | ArgumentGroup::Each { args, .. } => {
                for (index, one) in args.iter().enumerate() {
                    let at = report.text_of(&at.key("args").index(index));
                    self.argument(one, &at, report);
                }
            }
        }
    }

    fn argument(&mut self, argument: &Argument, at: &Pointer, report: &mut Report<'_>) {
        let is_value = std::mem::replace(&mut self.is_value, false);
        match argument.template.parts() {
            [] => {}
            [ArgPart::Literal(text)] if is_value => {
                if command::starts_others(text) {
                    refuse(at, report);
                }
            }
            [ArgPart::Literal(text)] => {
                self.is_value = self.options().any(|option| option == text);
                self.is_early &= self.is_folder || text.starts_with('-');
                self.is_folder = self.is_early && OF_GIT.contains(&text.as_str());
            }
            [first, ..] => {
                let is_glued = matches!(first, ArgPart::Literal(start) if self.is_glued(start));
                if is_value || is_glued {
                    refuse(at, report);
                }
            }
        }
    }

    fn options(&self) -> impl Iterator<Item = &'static str> + use<> {
        let early = if self.is_early { self.takers.early } else { &[] };
        self.takers.options.iter().chain(early).copied()
    }

    /// `--rsh=…`, and `-e…` where the letter stands alone.
    fn is_glued(&self, start: &str) -> bool {
        self.options().any(|option| {
            let rest = start.strip_prefix(option);
            rest.is_some_and(|rest| rest.starts_with('=') || (option.len() == 2 && !option.starts_with("--")))
        })
    }
}

fn refuse(at: &Pointer, report: &mut Report<'_>) {
    report.say(
        at,
        "the option before it starts another program, and this would choose which",
        "write the program out, and no shell",
    );
}

const fn takers(names: &'static [&'static str], options: &'static [&'static str]) -> Takers {
    Takers { names, options, early: &[] }
}

/// Options of git's own that take the next word for their value.
const OF_GIT: [&str; 4] = ["-C", "--git-dir", "--namespace", "--work-tree"];

const TAKERS: [Takers; 17] = [
    takers(&["find", "gfind"], &["-exec", "-execdir", "-ok", "-okdir"]),
    takers(&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"]),
    takers(
        &["bsdtar", "gtar", "tar"],
        &[
            "-F",
            "-I",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
    ),
    takers(&["sort"], &["--compress-program"]),
    takers(&["split"], &["--filter"]),
    takers(&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    takers(&["scp", "sftp", "slogin", "ssh"], &["-F", "-S", "-o"]),
    Takers {
        early: &["-c", "--config-env"],
        ..takers(
            &["git"],
            &[
                "--exec",
                "--exec-path",
                "--extcmd",
                "--open-files-in-pager",
                "--receive-pack",
                "--upload-pack",
            ],
        )
    },
    takers(&["rg"], &["--hostname-bin", "--pre"]),
    takers(&["zip"], &["-TT", "--unzip-command"]),
    takers(&["man"], &["-H", "-P", "--html", "--pager"]),
    takers(&["wget"], &["-e", "--execute", "--use-askpass"]),
    takers(&["gmake", "make"], &["-E", "--eval"]),
    takers(&["c++", "cc", "clang", "clang++", "g++", "gcc"], &["-B", "-fplugin", "-specs", "-wrapper"]),
    takers(&["nc", "ncat", "netcat"], &["-c", "-e", "--exec", "--lua-exec", "--sh-exec"]),
    takers(&["kubectl"], &["--kubeconfig"]),
    takers(&["helm"], &["--kubeconfig", "--post-renderer"]),
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
    fn a_caller_does_not_choose_what_another_program_starts() {
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
    fn values_elsewhere_stay_values() {
        check("find", &[".", "-name", "{x}"], true);
        check("find", &[".", "-exec", "cat", "{x}", ";"], true);
        check("tar", &["-xf", "a.tar", "--use-compress-program=zstd", "{x}"], true);
        check("git", &["switch", "-c", "{x}"], true);
        check("git", &["-c", "color.ui=never", "log", "{x}"], true);
        check("ssh", &["-o", "BatchMode=yes", "{x}", "uptime"], true);
    }
}
