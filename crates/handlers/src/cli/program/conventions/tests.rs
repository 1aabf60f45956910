use super::*;

fn of(command: &str) -> &'static Known {
    Known::of(command, command).unwrap()
}

#[test]
fn a_program_is_known_by_its_name_with_or_without_a_version() {
    for name in ["tar", "/usr/bin/tar", "tar-1.35", "TAR"] {
        assert!(of(name).reads_first_as_options(), "{name}");
    }
    assert!(of("base64").ends_options_at_dashes());
    assert!(of("sha256sum").ends_options_at_dashes());
    for name in ["", "/", "tarot", "git", "echo"] {
        assert!(!of(name).ends_options_at_dashes() && !of(name).reads_first_as_options());
    }
}

#[test]
fn a_link_is_what_it_is_called_and_what_it_leads_to() {
    let names = [("slogin", "ssh"), ("ssh", "slogin"), ("ssh", "ssh")];
    for (called, file) in names {
        assert!(Known::of(called, file).unwrap().refuses("x;id", "").is_some(), "{called} {file}");
    }
    assert!(Known::of("/usr/bin/ls", "busybox").unwrap().ends_options_at_dashes());
    assert!(Known::of("grep", "find").is_none() && Known::of("egrep", "grep").is_some());
}

#[test]
fn each_program_is_told_of_once() {
    let mut names: Vec<&str> = PROGRAMS.iter().flat_map(|known| known.names).copied().collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_url_that_a_caller_begins_leads_to_a_web_server() {
    let curl = of("curl");
    for url in ["http://ftp.a/b", "ftp", "ftpx.a", "a.ftp.b"] {
        assert_eq!(curl.refuses_operand(url), None, "{url}");
    }
    for url in ["http://a/b", "HTTPS://a", "a", "a.b:80/c?d=e:/f", "[::1]:80/a", "http://{a,b}/[1-9]"] {
        assert_eq!(curl.refuses_operand(url), None, "{url}");
    }
    for url in [
        "file:///a",
        "file:/a",
        "FILE:///a",
        " file:///a",
        "gopher://a/_b",
        "dict://a/d",
        "{file,x}:///a",
        "[f-f]ile:///a",
        "f{ile:///a,x}",
        "{/,file:/a}",
        "[f-f]x",
        "https{:,}//a",
        "ftp.example.com",
        "DICT.example.com:2628/d:x",
        "ann@imap.example.com/INBOX",
        "smtp.a?b",
    ] {
        assert!(curl.refuses_operand(url).is_some(), "{url}");
    }
    assert_eq!(of("git").refuses_operand("file:///a"), None);
    assert!(curl.takes_next("-sd") && curl.takes_next("--data") && !curl.takes_next("-sS"));
    assert!(!curl.takes_next("--url") && !curl.takes_next("--silent"));
}

#[test]
fn a_value_names_a_file_by_its_option() {
    let curl = of("curl");
    let refuses = |option, before, part: &str| {
        curl.refuses_file(option, (before, part), &format!("{before}{part}")).is_some()
    };
    for (option, before, part) in [
        (Some("--form"), "", "a=@f"),
        (Some("-sF"), "", "a=<f"),
        (Some("-F"), "a=", "@f"),
        (Some("-F"), "a=", "b;headers=@f"),
        (Some("-F"), "a=@x", ",f"),
        (Some("--data-urlencode"), "", "a@f"),
        (Some("--url-query"), "", "@f"),
        (Some("--cookie"), "", "f"),
        (None, "-sb", "f"),
        (None, "-F", "a=@f"),
        (None, "--data-urlencode=", "a@f"),
        (Some("-w"), "", "%output{f}"),
    ] {
        assert!(refuses(option, before, part), "{option:?} {before} {part}");
    }
    for (option, before, part) in [
        (Some("--form"), "", "a=b"),
        (Some("--form"), "f=@", "x"),
        (Some("--form-string"), "", "a=@f"),
        (Some("--data-urlencode"), "", "a=me@here"),
        (Some("--data-urlencode"), "a@", "x"),
        (Some("--cookie"), "", "a=b"),
        (Some("--cookie"), "a=", "b"),
        (Some("--data"), "", "a@f"),
        (None, "", "a=@f"),
    ] {
        assert!(!refuses(option, before, part), "{option:?} {before} {part}");
    }
}

#[test]
fn an_option_takes_the_next_element_or_the_rest_of_its_own() {
    let grep = of("grep");
    for option in ["-e", "-rne", "-m", "--regexp", "--max-count"] {
        assert!(grep.takes_next(option), "{option}");
    }
    for option in ["-r", "-m5", "-en", "--regexp=x", "--recursive", "-", "--", "x"] {
        assert!(!grep.takes_next(option), "{option}");
    }
    assert!(!grep.glues_options("-m") && !grep.glues_options("-rm") && !grep.glues_options("--x="));
    assert!(grep.glues_options("-r"));
}

#[test]
fn an_operand_of_awk_sets_no_variable() {
    for operand in ["FS=,", "x=1", "_a9=", "awk::NR=1", "a=/b"] {
        assert!(of("mawk").refuses_operand(operand).is_some(), "{operand}");
    }
    for operand in ["a.txt", "./a=b", "/w/a=b", "a b=c", "a.b=c", "=x", "9a=x", ":x=1"] {
        assert_eq!(of("awk").refuses_operand(operand), None, "{operand}");
    }
    // A separator is none, whatever it is.
    assert!(of("awk").takes_next("-F") && !of("awk").takes_next("-v"));
}

#[test]
fn commands_and_code_among_files_are_refused() {
    assert!(of("less").refuses("+!id", "").is_some() && of("less").refuses("a+b", "").is_none());
    let code = [
        "\\input{/etc/passwd}",
        "null \\input{/etc/passwd}",
        " \\input{x}",
        "null ^^5cinput{x}",
        "&x",
        "a b",
    ];
    for name in ["tex", "pdflatex", "luahbtex", "platex", "uplatex"] {
        for value in code {
            assert!(of(name).refuses(value, "").is_some(), "{name} {value}");
            assert!(of(name).refuses(value, "-jobname=").is_some(), "{name} {value}");
        }
        assert_eq!(of(name).refuses("/srv/papers/a-b_1/paper.v2.tex", ""), None, "{name}");
    }
}

#[test]
fn a_file_of_further_arguments_is_none_of_a_callers() {
    let compilers =
        ["c++", "c99", "cpp", "gfortran", "x86_64-linux-gnu-gcc", "aarch64-linux-gnu-g++-12", "clang-15"];
    let others = [
        "strings",
        "nm",
        "x86_64-linux-gnu-objdump",
        "ld.bfd",
        "llvm-readelf-15",
        "javadoc",
        "jar",
        "7z",
        "7zz",
    ];
    for name in compilers.into_iter().chain(others) {
        assert!(of(name).refuses("@options", "").is_some(), "{name}");
        assert!(of(name).refuses("@options", "--output=").is_some(), "{name}");
        assert_eq!(of(name).refuses("a@b", ""), None, "{name}");
    }
    // Links that lead from one name of a program to another.
    for (called, file) in [("c++", "x86_64-linux-gnu-g++-12"), ("strings", "x86_64-linux-gnu-strings")] {
        assert!(Known::of(called, file).unwrap().refuses("@options", "").is_some(), "{called} {file}");
    }
}
