//! Values for arguments. Names in braces stand for places of a canary.

use proptest::prelude::*;

/// For any program.
pub fn common() -> impl Iterator<Item = String> {
    let long = ["a".repeat(10_000), "../".repeat(1_000), "x".repeat(70_000), "-".repeat(5_000)];
    FAMILIES.iter().copied().flatten().chain(ODD).map(|word| (*word).to_owned()).chain(long)
}

/// Combinations of words, and random texts.
pub fn made_of(words: Vec<String>) -> impl Strategy<Value = String> {
    let short: Vec<String> = words.into_iter().filter(|word| word.len() < 300).collect();
    let nasty = prop::sample::select(short);
    // Letters only: digits could form an address.
    let word = "[a-z]{0,4}";
    prop_oneof![
        (word, nasty.clone(), word).prop_map(|(before, nasty, after)| format!("{before}{nasty}{after}")),
        (nasty.clone(), nasty.clone()).prop_map(|(one, other)| format!("{one} {other}")),
        (nasty.clone(), nasty).prop_map(|(one, other)| format!("{one}{other}")),
        "[^0-9]{1,12}",
    ]
}

/// Separators, pipes, conjunctions, backticks, substitutions, line breaks, redirections, traversal.
static FAMILIES: [&[&str]; 8] = [
    &[";", "; touch {MARK}", "x;touch${IFS}{MARK};", "; echo RAN-$((6*7))"],
    &["|", "| touch {MARK}", "x|touch {MARK}|", "|& touch {MARK}", "x | sh -c 'touch {MARK}'"],
    &["&& touch {MARK}", "|| touch {MARK}", "& touch {MARK} &", "x&&touch {MARK}||touch {MARK}"],
    &["`touch {MARK}`", "x`touch {MARK}`x", "`echo RAN-$((6*7))`"],
    &[
        "$(touch {MARK})",
        "x$(cat {OUT})x",
        "$((6*7))",
        "RAN-$((6*7))",
        "$HOME",
        "${x:=`touch {MARK}`}",
        "$(<{OUT})",
    ],
    &["\ntouch {MARK}", "x\r\ntouch {MARK}", "x\n{OUT}", "x\u{2028}touch {MARK}", "x\u{85}y", "a\0b", "\0"],
    &[
        "> {MARK}",
        ">{MARK}",
        "x >> {MARK}",
        "2>{MARK}",
        "< {OUT}",
        "<(cat {OUT})",
        ">(touch {MARK})",
        "<<< x",
    ],
    &[
        "..",
        "../../outside/passwd",
        "../private/near.txt",
        "../private/secret.txt",
        "./docs/../private/near.txt",
        "docs//..//private",
        "docs/leads_out/passwd",
        "inside/docs/leads_out",
        "inside/private/near.txt",
        "inside/private",
        "inside/docs/.env",
        ".env",
        ".toolgate/state",
        "{OUT}",
        "{SECRET}",
        "{NEAR}",
        "{HOME}/.netrc",
        "~/.netrc",
        "~root",
        "....//....//outside/passwd",
        "..%2f..%2foutside%2fpasswd",
        "%2e%2e/%2e%2e/outside/passwd",
        "..%c0%af..%c0%afoutside",
        "..\\..\\outside\\passwd",
        "/proc/self/root{OUT}",
        "/proc/self/cwd/../../outside/passwd",
        "/proc/1/root{OUT}",
        "/dev/fd/0",
        "/dev/tcp/{FORBIDDEN}",
        "/etc/passwd",
        "/",
    ],
];

/// Empty, blank, with dashes other than a hyphen, with wildcards, quoted.
const ODD: &[&str] = &[
    "",
    " ",
    " -x",
    "  --help",
    "-",
    "--",
    "---",
    "-\u{200b}x",
    "\u{2010}x",
    "\u{2013}exec",
    "\u{2014}output={MARK}",
    "\u{2212}delete",
    "\u{ff0d}\u{ff0d}output={MARK}",
    "\u{feff}-x",
    "\u{202e}-x",
    "\t-x",
    "\x1b[2J",
    "*",
    "?*",
    "[a-z]*",
    "{a,b}",
    "'",
    "\"",
    "\\",
    "%s%n",
    "#",
    "=",
    "@",
    "@{OUT}",
    ":",
    "!",
    "(",
    ")",
    ",",
];
