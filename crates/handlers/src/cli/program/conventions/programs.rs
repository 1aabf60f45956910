//! The table of known programs.

use super::{
    Conventions, FirstElement, Operands, OptionsEnd, SearchMode, SpecialCharacters, UNKNOWN, ValueLines,
};
use crate::cli::program::file_values;

/// `echo` is missing because it would print the `--`. In `git`, `--` separates revisions from paths, so only its
/// search is known.
pub static PROGRAMS: [Conventions; 43] = [
    with_dashes(&["cat", "realpath", "readlink", "dirname"], "", &["relative-to", "relative-base"]),
    with_dashes(&["tac"], "s", &["separator"]),
    with_dashes(
        &[
            "md5sum",
            "sha1sum",
            "sha224sum",
            "sha256sum",
            "sha384sum",
            "sha512sum",
            "b2sum",
            "cksum",
            "base64",
            "base32",
        ],
        "alw",
        &["algorithm", "length", "wrap"],
    ),
    Conventions {
        partial_exit: Some(1),
        ..with_dashes(
            &["ls", "dir", "vdir"],
            "ITw",
            &[
                "ignore",
                "tabsize",
                "width",
                "hide",
                "time-style",
                "block-size",
                "format",
                "indicator-style",
                "quoting-style",
                "sort",
                "time",
            ],
        )
    },
    with_dashes(&["head"], "cn", &["bytes", "lines"]),
    with_dashes(&["tail"], "cns", &["bytes", "lines", "sleep-interval", "pid", "max-unchanged-stats"]),
    with_dashes(&["wc"], "", &["files0-from", "total"]),
    with_dashes(
        &["sort"],
        "koStT",
        &[
            "key",
            "output",
            "buffer-size",
            "field-separator",
            "temporary-directory",
            "batch-size",
            "compress-program",
            "files0-from",
            "parallel",
            "random-source",
            "sort",
        ],
    ),
    with_dashes(&["uniq"], "fsw", &["skip-fields", "skip-chars", "check-chars"]),
    with_dashes(&["cut"], "bcdf", &["bytes", "characters", "delimiter", "fields", "output-delimiter"]),
    with_dashes(
        &["nl"],
        "bdfhilnsvw",
        &[
            "body-numbering",
            "section-delimiter",
            "footer-numbering",
            "header-numbering",
            "line-increment",
            "join-blank-lines",
            "number-format",
            "number-separator",
            "starting-line-number",
            "number-width",
        ],
    ),
    Conventions {
        partial_exit: Some(1),
        ..with_dashes(
            &["du"],
            "BXdt",
            &["block-size", "max-depth", "threshold", "exclude", "exclude-from", "files0-from", "time-style"],
        )
    },
    with_dashes(&["df"], "Btx", &["block-size", "type", "exclude-type"]),
    with_dashes(&["stat"], "c", &["format", "printf"]),
    with_dashes(&["basename"], "s", &["suffix"]),
    with_dashes(&["cp", "mv", "ln"], "tS", &["target-directory", "suffix", "no-preserve", "sparse"]),
    with_dashes(&["mkdir"], "m", &["mode"]),
    with_dashes(&["rm", "rmdir", "unlink"], "", &[]),
    with_dashes(&["touch"], "drt", &["date", "reference", "time"]),
    Conventions {
        search: SearchMode::With("grep"),
        revealing: "p",
        answer: Some(1),
        ..with_special(&["git"], SpecialCharacters::None)
    },
    // For this program, exit code 1 is a failure.
    Conventions { search: SearchMode::Always, ..with_special(&["logcli"], SpecialCharacters::None) },
    Conventions {
        search: SearchMode::WithOption('g', "grep"),
        no_match: Some("-- No entries --"),
        answer: Some(1),
        ..with_special(&["journalctl"], SpecialCharacters::None)
    },
    searching(
        &[
            "agrep",
            "bzegrep",
            "bzfgrep",
            "bzgrep",
            "lz4grep",
            "lzegrep",
            "lzfgrep",
            "lzgrep",
            "pcre2grep",
            "pcregrep",
            "pdfgrep",
            "tre-agrep",
            "xzegrep",
            "xzfgrep",
            "xzgrep",
            "zegrep",
            "zfgrep",
            "zipgrep",
            "zstdegrep",
            "zstdfgrep",
            "zstdgrep",
        ],
        "",
        "",
    ),
    searching(&["rg", "rga"], "ABCEMTdefgjmrt", "p"),
    searching(&["ack"], "ABCm", "p"),
    searching(&["ag"], "ABCGWgmp", "H"),
    searching(&["ug", "ugrep"], "ABCDJKMNOdefgmt", "+"),
    Conventions {
        search: SearchMode::Always,
        answer: Some(1),
        partial_exit: Some(2),
        ..with_dashes(
            &["grep", "egrep", "fgrep", "zgrep"],
            "ABCDdefm",
            &[
                "regexp",
                "file",
                "max-count",
                "after-context",
                "before-context",
                "context",
                "devices",
                "directories",
                "label",
                "binary-files",
                "exclude",
                "exclude-from",
                "exclude-dir",
                "group-separator",
                "include",
            ],
        )
    },
    Conventions {
        answer: Some(1),
        ..with_dashes(
            &["diff"],
            "CDFILSUWXx",
            &[
                "context",
                "unified",
                "show-function-line",
                "label",
                "width",
                "exclude",
                "exclude-from",
                "starting-file",
                "ignore-matching-lines",
                "ifdef",
                "from-file",
                "to-file",
                "horizon-lines",
                "palette",
                "tabsize",
            ],
        )
    },
    Conventions { answer: Some(1), ..with_dashes(&["cmp"], "in", &["bytes", "ignore-initial"]) },
    Conventions {
        partial_exit: Some(1),
        ..with_special(
            &["find"],
            SpecialCharacters::Leading { signs: "()!,", why: "which begins an expression of this command" },
        )
    },
    Conventions {
        operands: Operands::Urls,
        files: &file_values::CURL,
        letters: "ACDEFHKPQTUXYbcdemortuwxyz",
        words: &[
            "config",
            "connect-timeout",
            "connect-to",
            "cookie",
            "cookie-jar",
            "data",
            "data-ascii",
            "data-binary",
            "data-raw",
            "data-urlencode",
            "dump-header",
            "form",
            "form-string",
            "header",
            "json",
            "limit-rate",
            "max-filesize",
            "max-redirs",
            "max-time",
            "output",
            "proto",
            "proxy",
            "range",
            "referer",
            "request",
            "resolve",
            "retry",
            "upload-file",
            "url-query",
            "user",
            "user-agent",
            "variable",
            "write-out",
        ],
        ..with_special(&["curl"], NAMES_A_FILE)
    },
    with_special(&["wget"], NAMES_A_FILE),
    Conventions {
        first: FirstElement::Options,
        ..with_special(
            &["tar", "bsdtar", "ar"],
            SpecialCharacters::Anywhere {
                signs: ":@",
                why: "which this command can read as another machine or archive",
            },
        )
    },
    Conventions { first: FirstElement::Options, ..with_special(&["ps"], SpecialCharacters::None) },
    with_special(
        &["ssh", "scp", "sftp", "rsync", "mosh"],
        SpecialCharacters::AllBut {
            signs: "._@%+=,/-",
            why: "which has a special meaning for the remote shell or the command itself",
        },
    ),
    with_special(
        &["make", "gmake", "dd"],
        SpecialCharacters::Anywhere { signs: "=", why: "which this command reads as a setting" },
    ),
    with_special(
        &[
            "7z",
            "7za",
            "7zz",
            "addr2line",
            "as",
            "c++",
            "c++filt",
            "c89",
            "c99",
            "cc",
            "clang",
            "clang++",
            "clang-cpp",
            "cpp",
            "dlltool",
            "dwp",
            "elfedit",
            "g++",
            "gcc",
            "gccgo",
            "gdc",
            "gfortran",
            "gold",
            "gprof",
            "jar",
            "java",
            "javac",
            "javadoc",
            "jdeps",
            "jlink",
            "jpackage",
            "ld",
            "ld.bfd",
            "ld.gold",
            "ld.lld",
            "lld",
            "mold",
            "nm",
            "objcopy",
            "objdump",
            "ranlib",
            "readelf",
            "rustc",
            "rustdoc",
            "size",
            "strings",
            "strip",
            "windres",
        ],
        SpecialCharacters::Leading {
            signs: "@",
            why: "which this command reads as a file of further arguments",
        },
    ),
    Conventions { lines: ValueLines::Many, ..with_special(&["bash"], SpecialCharacters::None) },
    Conventions {
        operands: Operands::FilesOrSettings,
        // Not `v`: its value is an assignment.
        letters: "F",
        ..with_special(&["awk", "gawk", "mawk", "nawk", "original-awk"], SpecialCharacters::None)
    },
    with_special(
        &["less", "more", "most"],
        SpecialCharacters::Leading { signs: "+", why: "which begins a command of this program" },
    ),
    with_special(
        &[
            "tex", "latex", "pdftex", "pdflatex", "xetex", "xelatex", "luatex", "luahbtex", "lualatex",
            "etex", "ptex", "platex", "eptex", "uptex", "uplatex", "euptex",
        ],
        // The arguments together form the first line of the document.
        SpecialCharacters::AllBut { signs: "/._-+,", why: "which can begin code for this command" },
    ),
    with_special(
        &["openssl"],
        SpecialCharacters::Anywhere { signs: ":", why: "which this command can read as a file or variable" },
    ),
];

const fn with_dashes(
    names: &'static [&'static str],
    letters: &'static str,
    words: &'static [&'static str],
) -> Conventions {
    Conventions { names, ending: OptionsEnd::AtDashes, letters, words, ..UNKNOWN }
}

const fn with_special(names: &'static [&'static str], marks: SpecialCharacters) -> Conventions {
    Conventions { names, marks, ..UNKNOWN }
}

const fn searching(
    names: &'static [&'static str],
    letters: &'static str,
    revealing: &'static str,
) -> Conventions {
    Conventions {
        search: SearchMode::Always,
        letters,
        revealing,
        answer: Some(1),
        partial_exit: Some(2),
        ..with_special(names, SpecialCharacters::None)
    }
}

const NAMES_A_FILE: SpecialCharacters =
    SpecialCharacters::Leading { signs: "@<", why: "which this command reads as a file to send" };
