//! Which programs are known, and for what?

use super::{FirstElement, Known, Lines, Marks, Operands, OptionsEnd, Search, UNKNOWN};
use crate::cli::program::file_values;

/// `echo` is not here: it would print the `--`. Of `git`, where `--` parts revisions from paths, only is known that it can search.
pub static PROGRAMS: [Known; 43] = [
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
    Known {
        partly: Some(1),
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
    Known {
        partly: Some(1),
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
    Known {
        search: Search::With("grep"),
        telling: "p",
        answer: Some(1),
        ..with_marks(&["git"], Marks::None)
    },
    // Its exit code 1 is a failure.
    Known { search: Search::Always, ..with_marks(&["logcli"], Marks::None) },
    Known {
        search: Search::WithOption('g', "grep"),
        nothing_found: Some("-- No entries --"),
        answer: Some(1),
        ..with_marks(&["journalctl"], Marks::None)
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
    Known {
        search: Search::Always,
        answer: Some(1),
        partly: Some(2),
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
    Known {
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
    Known { answer: Some(1), ..with_dashes(&["cmp"], "in", &["bytes", "ignore-initial"]) },
    Known {
        partly: Some(1),
        ..with_marks(
            &["find"],
            Marks::Leading { signs: "()!,", why: "which to this command begins an expression" },
        )
    },
    Known {
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
        ..with_marks(&["curl"], NAMES_A_FILE)
    },
    with_marks(&["wget"], NAMES_A_FILE),
    Known {
        first: FirstElement::Options,
        ..with_marks(
            &["tar", "bsdtar", "ar"],
            Marks::Anywhere { signs: ":@", why: "which to this command can name another machine or archive" },
        )
    },
    Known { first: FirstElement::Options, ..with_marks(&["ps"], Marks::None) },
    with_marks(
        &["ssh", "scp", "sftp", "rsync", "mosh"],
        Marks::AllBut {
            signs: "._@%+=,/-",
            why: "which a shell at the other end, or the command itself, gives a meaning",
        },
    ),
    with_marks(
        &["make", "gmake", "dd"],
        Marks::Anywhere { signs: "=", why: "which to this command is a setting" },
    ),
    with_marks(
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
        Marks::Leading { signs: "@", why: "which to this command names a file of further arguments" },
    ),
    Known { lines: Lines::Many, ..with_marks(&["bash"], Marks::None) },
    Known {
        operands: Operands::FilesOrSettings,
        // Not `v`: what a caller writes after it would be a setting.
        letters: "F",
        ..with_marks(&["awk", "gawk", "mawk", "nawk", "original-awk"], Marks::None)
    },
    with_marks(
        &["less", "more", "most"],
        Marks::Leading { signs: "+", why: "which to this command is a command of its own" },
    ),
    with_marks(
        &[
            "tex", "latex", "pdftex", "pdflatex", "xetex", "xelatex", "luatex", "luahbtex", "lualatex",
            "etex", "ptex", "platex", "eptex", "uptex", "uplatex", "euptex",
        ],
        // All arguments together are the first line of the document.
        Marks::AllBut { signs: "/._-+,", why: "which in a line of this command's can begin code" },
    ),
    with_marks(
        &["openssl"],
        Marks::Anywhere { signs: ":", why: "which to this command can name a file or variable" },
    ),
];

const fn with_dashes(
    names: &'static [&'static str],
    letters: &'static str,
    words: &'static [&'static str],
) -> Known {
    Known { names, ending: OptionsEnd::AtDashes, letters, words, ..UNKNOWN }
}

const fn with_marks(names: &'static [&'static str], marks: Marks) -> Known {
    Known { names, marks, ..UNKNOWN }
}

const fn searching(names: &'static [&'static str], letters: &'static str, telling: &'static str) -> Known {
    Known {
        search: Search::Always,
        letters,
        telling,
        answer: Some(1),
        partly: Some(2),
        ..with_marks(names, Marks::None)
    }
}

const NAMES_A_FILE: Marks = Marks::Leading { signs: "@<", why: "which to this command names a file to send" };
