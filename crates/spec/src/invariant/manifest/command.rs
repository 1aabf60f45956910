//! Checks the program of a command: fixed by the author, and not a program that runs other programs.

mod target;

/// Returns why a command is rejected, and the remedy.
pub(super) fn refuse(command: &str) -> Option<(String, &'static str)> {
    let form = "write an absolute path such as `/usr/bin/git`, or a bare name such as `git`";
    if command.contains(['{', '}', '$']) {
        return Some(("the command must be literal; templates are not expanded here".into(), form));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-' | '@' | '/');
    if let Some(bad) = command.chars().find(|c| !is_allowed(*c)) {
        let shown = bad.escape_debug().to_string();
        let message = if bad.is_whitespace() {
            format!("the command contains a space (`{shown}`); there is no shell to split it")
        } else {
            format!("`{shown}` is not allowed in a command; there is no shell")
        };
        return Some((message, "write the program alone; its arguments go into `args`"));
    }
    if command.starts_with('-') || matches!(command, "." | "..") {
        return Some((format!("`{command}` is not a program"), form));
    }
    if let Some(below) = command.strip_prefix('/') {
        if below.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Some(("the path is not normalized".into(), form));
        }
        if let Some(folder) = OPEN_FOLDERS.iter().find(|folder| command.starts_with(*folder)) {
            let message = format!("other users can replace files in `{folder}`");
            return Some((message, "install the program where only the operator can write"));
        }
    } else if command.contains('/') {
        return Some(("a relative path depends on where the gateway was started".into(), form));
    }
    if starts_others(command) {
        return Some((
            format!("`{command}` starts other programs: it would run what the agent writes"),
            "name the program itself; `env`, `cwd` and `timeout` are settings of the handler",
        ));
    }
    None
}

/// Whether the program runs other programs. A dynamic loader does, under an architecture-specific name.
pub fn starts_others(command: &str) -> bool {
    let program = family(command);
    let is_loader = program == "ld.so"
        || program.starts_with("ld-linux")
        || program.starts_with("ld-musl")
        || (program.starts_with("ld-") && program.contains(".so"));
    // Matches `bash5.2-dbg`, but not `sh2ju`.
    let is_launcher = |name: &&str| program == **name || (is_build(&program, name) && program.contains('-'));
    is_loader || LAUNCHERS.iter().any(is_launcher)
}

/// `python3.12-dbg` and `perl5.36-x86_64-linux-gnu`: the name and a version.
pub(super) fn is_build(family: &str, name: &str) -> bool {
    family.strip_prefix(name).is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// `python-dbg` and `php-cgi`.
pub(super) fn is_variant(family: &str, name: &str) -> bool {
    family.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}

/// `/usr/bin/python3.12` is a `python`, and `x86_64-linux-gnu-gcc-12` a `gcc`.
pub fn family(command: &str) -> String {
    let name = command.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let name = without_version(name.strip_suffix(".exe").unwrap_or(&name));
    without_version(target::without_target(name)).to_owned()
}

fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

const OPEN_FOLDERS: [&str; 5] = ["/dev/", "/proc/", "/run/user/", "/tmp/", "/var/tmp/"];

const LAUNCHERS: &[&str] = &[
    "aa-exec",
    "abduco",
    "ash",
    "ash-static",
    "at",
    "autoexpect",
    "bash",
    "bash-static",
    "batch",
    "busybox",
    "bwrap",
    "capsh",
    "catatonit",
    "catchsegv",
    "cgexec",
    "choom",
    "chpst",
    "chronic",
    "chroot",
    "chrt",
    "cmd",
    "cpulimit",
    "csh",
    "daemon",
    "daemonize",
    "dash",
    "dbus-launch",
    "dbus-run-session",
    "direnv",
    "doas",
    "dtach",
    "dumb-init",
    "eatmydata",
    "elvish",
    "entr",
    "env",
    "env_parallel",
    "envdir",
    "envuidgid",
    "expect",
    "fakechroot",
    "fakeroot",
    "faketime",
    "firejail",
    "fish",
    "flock",
    "gdb",
    "gdbserver",
    "genv",
    "git-shell",
    "gnice",
    "gnohup",
    "gosu",
    "gstdbuf",
    "gtime",
    "gtimeout",
    "gxargs",
    "heaptrack",
    "hyperfine",
    "ifne",
    "ionice",
    "ksh",
    "lksh",
    "lldb",
    "logsave",
    "ltrace",
    "mispipe",
    "mksh",
    "newgrp",
    "nice",
    "nodemon",
    "nohup",
    "nsenter",
    "nu",
    "numactl",
    "oksh",
    "osh",
    "parallel",
    "pdksh",
    "pee",
    "perf",
    "pkexec",
    "posh",
    "powershell",
    "prlimit",
    "proot",
    "proxychains",
    "pwsh",
    "rbash",
    "rlwrap",
    "rr",
    "run-parts",
    "runcon",
    "runuser",
    "sash",
    "screen",
    "script",
    "sem",
    "setarch",
    "setpriv",
    "setsid",
    "setuidgid",
    "sg",
    "sh",
    "socat",
    "softlimit",
    "ssh-agent",
    "sshpass",
    "start-stop-daemon",
    "static-sh",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "systemd-cat",
    "systemd-inhibit",
    "systemd-nspawn",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timelimit",
    "timeout",
    "tini",
    "tmux",
    "torify",
    "torsocks",
    "toybox",
    "trickle",
    "tsocks",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "watchexec",
    "wine",
    "xargs",
    "xonsh",
    "xvfb-run",
    "yash",
    "ysh",
    "zsh",
    "zsh-static",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expect: Option<&str>) {
        let why = refuse(command).map(|(message, _)| message);
        match (why, expect) {
            (None, None) => {}
            (Some(why), Some(part)) if why.contains(part) => {}
            (why, _) => panic!("{command:?}: {why:?}, not {expect:?}"),
        }
    }

    #[test]
    fn command_must_be_a_plain_name_or_path() {
        for good in [
            "git",
            "/usr/bin/git",
            "g++",
            "ld",
            "ld.gold",
            "python3.12",
            "x86_64-linux-gnu-gcc",
            "/opt/a-b_c/bin/d@2",
        ] {
            check(good, None);
        }
        check("git log", Some("space"));
        check("git\u{a0}log", Some("space"));
        check("git\u{200b}", Some("not allowed"));
        check("git;id", Some("not allowed"));
        check("g\u{456}t", Some("not allowed"));
        check("{cmd}", Some("literal"));
        check("$HOME/bin/x", Some("literal"));
        check("./x", Some("relative"));
        check("bin/x", Some("relative"));
        check("/usr/../bin/x", Some("not normalized"));
        check("/usr//bin/x", Some("not normalized"));
        check("/usr/bin/", Some("not normalized"));
        check("-x", Some("not a program"));
        check("/tmp/x", Some("can replace files"));
        check("/proc/self/exe", Some("can replace files"));
    }

    #[test]
    fn programs_that_start_others_are_rejected_in_every_spelling() {
        for command in [
            "sh",
            "/bin/sh",
            "bash5",
            "BASH",
            "/usr/bin/env",
            "sudo",
            "busybox",
            "bash-5.2",
            "bash5.2-dbg",
            "pwsh.exe",
        ] {
            check(command, Some("starts other programs"));
        }
        for command in [
            "bash-static",
            "static-sh",
            "yash",
            "strace",
            "ltrace",
            "taskset",
            "gdb",
            "/lib64/ld-linux-x86-64.so.2",
            "/lib/ld-musl-x86_64.so.1",
            "ld-2.31.so",
            "ld.so",
            "prlimit",
            "watch",
            "bwrap",
            "fakeroot",
            "socat",
            "valgrind",
            "tmux",
            "gtimeout",
            "proxychains4",
        ] {
            check(command, Some("starts other programs"));
        }
    }
}
