//! Table of programs that start other programs, and the options that do it.

pub struct Takers {
    names: &'static [&'static str],
    pub options: &'static [&'static str],
    /// Options that name a file or directory, which names the programs.
    pub files: &'static [&'static str],
    /// Options that start a program only before the subcommand.
    pub early: &'static [&'static str],
    /// Options that start a program only after this subcommand.
    pub late: &'static [(&'static str, &'static str)],
    /// A subcommand and a word after it. The rest is the command line of another program.
    pub lines: &'static [(&'static str, &'static str)],
    /// Options that start no program, but are the beginning of one that does.
    pub others: &'static [&'static str],
    /// Letters without a value. Others may follow in the same word: `-aze`.
    pub switches: &'static str,
    /// The first word is read as letters even without a dash: `tar xIf`.
    pub leads_with_letters: bool,
    /// An option, and those of its settings that are only data.
    pub data: (&'static str, &'static [&'static str]),
    /// The words that end a command line, if the options take a whole one.
    pub line_ends: &'static [&'static str],
    pub settings: VariableSettings,
}

/// The meaning of `NAME=value` that is not an option.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum VariableSettings {
    Data,
    /// The value may contain code: `$(shell …)`.
    Code,
}

impl Takers {
    pub fn of_family(family: &str) -> Option<&'static Self> {
        TAKERS.iter().find(|takers| takers.names.contains(&family))
    }

    /// The subcommand with this name, if it has options in the table.
    pub fn subcommand(&self, name: &str) -> Option<&'static str> {
        let mut known = self.late.iter().chain(self.lines).map(|(of, _)| *of);
        known.find(|of| *of == name)
    }
}

/// Each entry exists once, so this compares addresses.
impl PartialEq for Takers {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

const fn takers(names: &'static [&'static str], options: &'static [&'static str]) -> Takers {
    Takers {
        names,
        options,
        files: &[],
        early: &[],
        late: &[],
        lines: &[],
        others: &[],
        switches: "",
        leads_with_letters: false,
        data: ("", &[]),
        line_ends: &[],
        settings: VariableSettings::Data,
    }
}

const fn files(names: &'static [&'static str], files: &'static [&'static str]) -> Takers {
    Takers { files, ..takers(names, &[]) }
}

/// Options of git itself that take the next word as their value.
pub const OF_GIT: [&str; 4] = ["-C", "--git-dir", "--namespace", "--work-tree"];

static TAKERS: [Takers; 25] = [
    Takers { line_ends: &[";", "+"], ..takers(&["find", "gfind"], &["-exec", "-execdir", "-ok", "-okdir"]) },
    Takers {
        switches: "01FHILagilpqsu",
        line_ends: &[";"],
        ..takers(&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"])
    },
    Takers {
        switches: "ABEGJMOPRSUWZacdehijklmnopqrstuvwxyz",
        leads_with_letters: true,
        others: &["--checkpoint"],
        ..takers(
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
        )
    },
    takers(&["sort"], &["--compress-program"]),
    takers(&["split"], &["--filter"]),
    Takers {
        switches: "0468ACDEFHIJKLNOPRSUWXabcdghiklmnopqrstuvwxyz",
        ..takers(&["rsync"], &["-e", "--rsh", "--rsync-path"])
    },
    Takers {
        switches: "346ABCGKMNOTVXYafgknpqrstvxy",
        data: ("-o", &["ConnectTimeout=", "Port=", "ServerAliveInterval="]),
        ..takers(&["sftp", "slogin", "ssh"], &["-F", "-S", "-o"])
    },
    Takers {
        switches: "346ABCOTpqrv",
        data: ("-o", &["ConnectTimeout=", "Port=", "ServerAliveInterval="]),
        ..takers(&["scp"], &["-D", "-F", "-S", "-o"])
    },
    Takers {
        early: &["-c", "--config-env"],
        late: &[
            ("clone", "-c"),
            ("clone", "-u"),
            ("clone", "--config"),
            ("difftool", "-x"),
            ("filter-branch", "--commit-filter"),
            ("filter-branch", "--env-filter"),
            ("filter-branch", "--index-filter"),
            ("filter-branch", "--msg-filter"),
            ("filter-branch", "--parent-filter"),
            ("filter-branch", "--setup"),
            ("filter-branch", "--tag-name-filter"),
            ("filter-branch", "--tree-filter"),
            ("grep", "-O"),
            ("instaweb", "-b"),
            ("instaweb", "-d"),
            ("instaweb", "--browser"),
            ("instaweb", "--httpd"),
            ("rebase", "-x"),
            ("send-email", "--cc-cmd"),
            ("send-email", "--header-cmd"),
            ("send-email", "--sendmail-cmd"),
            ("send-email", "--smtp-server"),
            ("send-email", "--to-cmd"),
        ],
        lines: &[("bisect", "run"), ("submodule", "foreach")],
        files: &["--template"],
        others: &["--cc", "--to"],
        switches: "EFGHILPWacdefghiklnopqrstvwyz",
        data: ("-c", &["user.email=", "user.name="]),
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
    Takers { switches: "7DKadfkuw", ..takers(&["man"], &["-H", "-P", "--html", "--pager"]) },
    Takers {
        switches: "46EFHKLNSbcdhkmnpqrvx",
        files: &["--config"],
        ..takers(&["wget"], &["-e", "--execute", "--use-askpass"])
    },
    Takers {
        switches: "#0123460BGIJLMNORSVZafgijklnpqsv",
        files: &["-K", "--config"],
        ..takers(&["curl"], &["--engine"])
    },
    Takers {
        switches: "BLRSbeikmnpqrstvw",
        files: &["-C", "-I", "-f", "--directory", "--file", "--include-dir", "--makefile"],
        settings: VariableSettings::Code,
        ..takers(&["gmake", "make"], &["-E", "--eval"])
    },
    files(&["cmake"], &["-C", "-P", "-S", "--build"]),
    files(
        &["ant", "gradle", "just", "meson", "mvn", "ninja", "rake", "scons"],
        &[
            "-C",
            "-I",
            "-b",
            "-f",
            "-p",
            "--build-file",
            "--buildfile",
            "--directory",
            "--file",
            "--init-script",
            "--justfile",
            "--project-dir",
            "--rakefile",
        ],
    ),
    Takers { others: &["--data"], ..files(&["nmap"], &["--datadir", "--script"]) },
    files(&["openssl"], &["-config", "-engine", "-provider", "-provider-path"]),
    Takers { switches: "#ABDHIJKLNOSUXbdefhlnpqtuvx", ..takers(&["tcpdump"], &["-z"]) },
    takers(&["go"], &["-exec", "-overlay", "-toolexec", "-vettool"]),
    // `c89` and `c99` are `c` here.
    takers(
        &["c", "c++", "cc", "clang", "clang++", "cpp", "g++", "gcc", "gccgo", "gdc", "gfortran"],
        &["-B", "-fplugin", "-specs", "-wrapper", "--prefix", "--specs"],
    ),
    Takers {
        switches: "46CDFLNSUdhklnrtuvz",
        ..takers(&["nc", "ncat", "netcat"], &["-c", "-e", "--exec", "--lua-exec", "--sh-exec"])
    },
    takers(&["kubectl"], &["--kubeconfig"]),
    takers(&["helm"], &["--kubeconfig", "--post-renderer"]),
];
