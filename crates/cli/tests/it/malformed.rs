//! Malformed files give a finding at the right position, in bounded time and memory.

use std::{fmt::Write, fs, os::unix::fs::PermissionsExt, process::Command};

use crate::bench::{Bench, Run, tool};

/// One error of this code at this line and column.
#[track_caller]
fn check(name: &str, content: impl AsRef<[u8]>, place: (u64, u64), says: &str) {
    let run = Bench::with(name, content).run(&["check", "--format", "json", name]).expect(1);
    let report = run.json();
    let finding = &report["findings"][0];
    assert_eq!(finding["code"], "SPEC_PARSE", "{report}");
    assert_eq!(
        (finding["line"].as_u64(), finding["column"].as_u64()),
        (Some(place.0), Some(place.1)),
        "{report}"
    );
    assert!(finding["message"].as_str().unwrap().contains(says), "{finding}");
}

#[test]
fn not_text() {
    check("a.json", b"{\"name\": \"a\",\n \"x\": \"\xff\"}", (2, 8), "not UTF-8");
    check("a.yaml", b"name: \xc3\x28", (1, 7), "not UTF-8");
    check("a.json", b"\xff\xfe{\0}\0", (1, 1), "UTF-16");
    check("a.json", b"\xef\xbb\xbf{}", (1, 1), "byte order mark");
    let garbage: Vec<u8> =
        (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 | 0x80).collect();
    check("a.json", garbage, (1, 1), "");
    check("a.json", [0_u8; 4096], (1, 1), "");
}

#[test]
fn not_whole() {
    check("a.json", "", (1, 1), "empty");
    check("a.yaml", "   \n", (1, 1), "empty");
    let whole = tool("add");
    for cut in (1..whole.trim_end().len()).step_by(37) {
        let run = Bench::with("a.json", &whole[..cut]).run(&["check", "a.json"]).expect(1);
        assert!(run.out.contains("error[SPEC_PARSE]"), "cut at {cut}: {}", run.out);
    }
}

#[test]
fn not_json() {
    check("a.json", "{\"name\": NaN}", (1, 10), "");
    check("a.json", "{\"a\": 1,\n \"a\": 2}", (2, 2), "");
    check("a.yaml", "a: 1\na: 2\n", (2, 1), "");
    check("a.json", "[]", (1, 1), "object");
    check("a.json", "null", (1, 1), "object");
}

#[test]
fn too_deep() {
    let deep =
        |open: &str, close: &str| format!("{{\"name\": {}1{}}}", open.repeat(10_000), close.repeat(10_000));
    for (name, content) in [
        ("a.json", deep("[", "]")),
        ("b.json", deep("{\"a\":", "}")),
        ("c.yaml", deep("[", "]")),
        ("d.yaml", (0..10_000).fold(String::new(), |text, at| text + &" ".repeat(at % 500) + "a:\n")),
        ("e.json", "[".repeat(1_000_000)),
    ] {
        let run = Bench::with(name, content).run(&["check", name]).expect(1);
        assert!(run.out.contains("error[SPEC_PARSE]"), "{name}: {}", run.out);
    }
}

#[test]
fn too_large() {
    let bench = Bench::new();
    let file = fs::File::create(bench.path("big.json")).unwrap();
    file.set_len(50 * 1024 * 1024).unwrap();
    let run = bench.run(&["check", "big.json"]).expect(1);
    assert!(run.out.contains("error[SPEC_PARSE]") && run.out.contains("bytes"), "{}", run.out);
    let run = bench.run_with_input(&["check", "-"], &vec![b' '; 40 * 1024 * 1024]).expect(1);
    assert!(run.out.contains("error[SPEC_PARSE]"), "{}", run.out);
}

#[test]
fn yaml_bomb_is_rejected() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{inner}]").unwrap();
    }
    let run = Bench::with("a.yaml", bomb).run(&["check", "a.yaml"]).expect(1);
    assert!(run.out.contains("error[SPEC_PARSE]"), "{}", run.out);
}

#[test]
fn many_findings_in_one_line_take_linear_time() {
    let params = vec!["{\"x\":1}"; 60_000].join(",");
    let content =
        format!("{{\"name\": \"x\", \"code\": \"1\", \"codeType\": \"Javascript\", \"params\": [{params}]}}");
    let run = Bench::with("a.json", content).run(&["check", "--quiet", "a.json"]).expect(1);
    assert!(run.out.contains("error[SPEC_PARSE]"));
}

#[test]
fn pipes_and_devices_do_not_block() {
    let bench = Bench::with("t/add.json", tool("add"));
    assert!(Command::new("mkfifo").arg(bench.path("t/pipe.json")).status().unwrap().success());
    std::os::unix::fs::symlink("self.json", bench.path("t/self.json")).unwrap();
    std::os::unix::fs::symlink("nowhere.json", bench.path("t/dangling.json")).unwrap();
    std::os::unix::fs::symlink("..", bench.path("t/up")).unwrap();
    fs::create_dir(bench.path("t/folder.json")).unwrap();
    let Run { out, err, .. } = bench.run(&["check", "t"]).expect(2);
    assert!(out.contains("1 tool in 1 file: 3 paths could not be read"), "{out}");
    for name in ["pipe.json", "self.json", "dangling.json"] {
        assert!(err.contains(name), "{err}");
    }
    bench.run(&["check", "t/pipe.json"]).expect(2);
    bench.run(&["check", "t/self.json"]).expect(2);
    bench.run(&["check", "/dev/zero"]).expect(2);
}

#[test]
fn directory_named_like_a_document_is_walked() {
    let bench = Bench::with("x.json/add.json", tool("add"));
    bench.run(&["check", "x.json"]).expect(0);
    bench.run(&["resolve", "x.json"]).expect(2);
}

#[test]
fn unreadable_file_is_reported() {
    let bench = Bench::with("t/add.json", tool("add"));
    bench.write("t/secret.json", tool("sum"));
    fs::set_permissions(bench.path("t/secret.json"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(bench.path("t/secret.json")).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    let run = bench.run(&["check", "t"]).expect(2);
    assert!(run.err.contains("secret.json"), "{}", run.err);
}

#[test]
fn bundle_of_empty_members_uses_little_memory() {
    let content = format!("{{\"toolSpecs\": [{}]}}", vec!["{}"; 1_000_000].join(","));
    let run = Bench::with("b.json", content).run(&["check", "--quiet", "b.json"]).expect(1);
    assert!(run.out.contains("error[SPEC_PARSE]"), "{}", run.out);
}
