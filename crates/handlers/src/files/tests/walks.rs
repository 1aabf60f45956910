use super::*;

fn tree() -> Ground {
    let ground = Ground::new();
    for file in ["ws/b/two.txt", "ws/b/deep/three.txt", "ws/a.txt", "ws/a/one.md", "lib/four.txt"] {
        ground.put(file, format!("first\nthe {file}\r\nlast"));
    }
    ground.link("ws/to-b", "b");
    ground.link("ws/to-a.txt", "a.txt");
    ground
}

const ALL: FindOptions = FindOptions { max_depth: 0, kind: None };

#[test]
fn find_walks_in_name_order() {
    let ground = tree();
    let files = ground.files();
    let everything =
        ["a", "a/one.md", "a.txt", "b", "b/deep", "b/deep/three.txt", "b/two.txt", "to-a.txt", "to-b"];
    assert_eq!(files.find(".", "*", ALL).unwrap(), everything);
    let kind = |kind| FindOptions { kind: Some(kind), ..ALL };
    assert_eq!(
        files.find(".", "*.txt", kind(EntryKind::File)).unwrap(),
        ["a.txt", "b/deep/three.txt", "b/two.txt"]
    );
    assert_eq!(files.find(".", "*", kind(EntryKind::Dir)).unwrap(), ["a", "b", "b/deep"]);
    assert_eq!(
        files.find("b", "{two,thr*}.t?[a-z]", FindOptions { max_depth: 1, ..ALL }).unwrap(),
        ["b/two.txt"]
    );
    assert_eq!(files.find("to-b", "two*", ALL).unwrap(), ["to-b/two.txt"]);
    let files = ground.files_with(|grants| grants.read_roots = vec![ground.path("lib")]);
    assert_eq!(files.find("../lib", "*", ALL).unwrap(), [ground.text_path("lib/four.txt")]);
}

#[test]
fn find_rejects_invalid_directories_and_globs() {
    let ground = tree();
    let files = ground.files();
    refused(files.find("a.txt", "*", ALL), "INVALID_INPUT find find-not-a-directory");
    refused(files.find("none", "*", ALL), "INVALID_INPUT find find-not-a-directory");
    let nested = format!("{}b{}", "{a,".repeat(300), "}".repeat(300));
    for glob in ["[", "{a", "a\\", &nested, &"x".repeat(1001)] {
        refused(files.find(".", glob, ALL), "INVALID_INPUT find find-invalid-glob");
    }
}

#[test]
fn search_returns_file_line_and_text() {
    let ground = tree();
    ground.put("ws/b/binary.txt", b"the start\n\xff\xfe");
    ground.put("ws/b/long.txt", format!("the start\n{}", "x".repeat(2 << 20)));
    let files = ground.files();
    let search = |pattern, options| {
        let hits = files.search_in_files(".", "*.txt", pattern, options).unwrap();
        hits.into_iter().map(|hit| format!("{}:{}:{}", hit.file, hit.line, hit.text)).collect::<Vec<_>>()
    };
    let options = SearchOptions::default();
    let expect = [
        "a.txt:2:the ws/a.txt",
        "b/deep/three.txt:2:the ws/b/deep/three.txt",
        "b/two.txt:2:the ws/b/two.txt",
    ];
    assert_eq!(search("the", options), expect);
    assert_eq!(search("THE", options), Vec::<String>::new());
    assert_eq!(search("THE", SearchOptions { case_insensitive: true, limit: 1, ..options }), expect[..1]);
    assert_eq!(search("the", SearchOptions { max_depth: 2, ..options }), [expect[0], expect[2]]);
    refused(
        files.search_in_files("none", "*", "x", options),
        "INVALID_INPUT searchInFiles find-not-a-directory",
    );
    refused(files.search_in_files(".", "[", "x", options), "INVALID_INPUT searchInFiles find-invalid-glob");
    refused(
        files.search_in_files(".", "*", "(", options),
        "INVALID_INPUT searchInFiles grep-invalid-pattern",
    );
    refused(
        files.search_in_files(".", "*", "", options),
        "INVALID_INPUT searchInFiles grep-pattern-required",
    );
}

#[test]
fn search_is_bounded() {
    let ground = Ground::new();
    ground.put("ws/f", "x\n".repeat(5000));
    let options = SearchOptions::default();
    let files = ground.files();
    assert_eq!(files.search_in_files(".", "*", "x", options).unwrap().len(), 1000);
    let beyond = SearchOptions { limit: 1001, ..options };
    refused(files.search_in_files(".", "*", "x", beyond), "HELPER_RUNTIME searchInFiles result-too-large");
    ground.put("ws/g", "y\n".repeat(5000));
    let files = ground.files_with(|grants| grants.caps.scan_bytes = 15_000);
    refused(files.search_in_files(".", "*", "z", options), "HELPER_RUNTIME searchInFiles scan-too-large");
}

#[test]
fn tree_walk_is_bounded_in_width_and_depth() {
    let ground = Ground::new();
    let files = ground
        .files_with(|grants| (grants.caps.walked, grants.caps.entries, grants.caps.depth) = (20, 10, 4));
    for number in 0..10 {
        ground.put(&format!("ws/wide/{number}"), "");
    }
    assert_eq!(files.find("wide", "*", ALL).unwrap().len(), 10);
    ground.put("ws/wide/more", "");
    refused(files.find("wide", "*", ALL), "HELPER_RUNTIME find result-too-large");
    refused(files.list("wide"), "HELPER_RUNTIME list result-too-large");
    assert_eq!(files.find("wide", "m*", ALL).unwrap(), ["wide/more"]);
    for number in 0..10 {
        ground.put(&format!("ws/wide/x{number}"), "");
    }
    refused(files.find("wide", "m*", ALL), "HELPER_RUNTIME find result-too-large");
    refused(files.delete_dir("wide"), "HELPER_RUNTIME deleteDir result-too-large");
    assert_eq!(fs::read_dir(ground.path("ws/wide")).unwrap().count(), 21);
    ground.put("ws/deep/1/2/3/4", "");
    assert_eq!(files.find("deep", "4", ALL).unwrap(), ["deep/1/2/3/4"]);
    fs::create_dir_all(ground.path("ws/deep/1/2/3/5/6")).unwrap();
    refused(files.find("deep", "4", ALL), "HELPER_RUNTIME find tree-too-deep");
    assert_eq!(files.find("deep", "4", FindOptions { max_depth: 4, ..ALL }).unwrap(), ["deep/1/2/3/4"]);
    refused(files.delete_dir("deep"), "HELPER_RUNTIME deleteDir tree-too-deep");
    assert!(ground.path("ws/deep/1/2/3/5/6").exists());
}

#[test]
fn deep_tree_neither_hangs_nor_overflows() {
    let ground = Ground::new();
    let mut dir = fs::File::open(ground.path("ws")).unwrap();
    for _ in 0..1000 {
        rustix::fs::mkdirat(&dir, "d", rustix::fs::Mode::RWXU).unwrap();
        dir = kernel::child_folder(&dir, "d".as_ref()).unwrap();
    }
    let files = ground.files();
    refused(files.find(".", "*", ALL), "HELPER_RUNTIME find tree-too-deep");
    refused(files.delete_dir("d"), "HELPER_RUNTIME deleteDir tree-too-deep");
    assert!(files.exists(&"d/".repeat(1000)).unwrap());
}
