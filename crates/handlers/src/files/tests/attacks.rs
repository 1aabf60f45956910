use super::*;

/// No function reveals the canary, and those that fail do so with `reason`.
#[track_caller]
fn check_unreachable(ground: &Ground, files: &Files, path: &str, reason: &str) {
    for said in everything_said_about(files, path) {
        assert!(!said.contains(CANARY), "{path}: {said}");
        assert!(said.starts_with("Err") && !said.contains("Ok("), "{path}: {said}");
    }
    refused(files.read_text(path), &format!("SECURITY readText {reason}"));
    assert!(!files.exists(path).unwrap(), "{path}");
    for written in [files.write_text(path, "x"), files.append_text(path, "x"), files.move_(path, "moved")] {
        assert!(written.is_err(), "{path}: {written:?}");
    }
    assert!(files.delete(path).is_err() && files.delete_dir(path).is_err(), "{path}");
    assert!(ground.is_untouched(), "{path}");
}

#[test]
fn parent_and_absolute_paths_do_not_leave_the_roots() {
    let ground = Ground::new();
    ground.put("ws/a/b", "");
    ground.put("wsx/secret", CANARY);
    let files = ground.files_with(|grants| grants.read_roots = vec![ground.path("lib")]);
    let absolute = ground.text_path("out/secret");
    let through = ground.text_path("ws/../out/secret");
    let sibling = ground.text_path("wsx/secret");
    for path in [
        "../out/secret",
        "a/../../out/secret",
        "./.././out//secret",
        "a/b/../../../out/secret/",
        "../ws/../out/secret",
        "../wsx/secret",
        "../lib/../out/secret",
        "/etc/passwd",
        "/",
        "..",
        "/proc/self/environ",
        "../../../../../../../../../../etc/passwd",
        &absolute,
        &through,
        &sibling,
    ] {
        check_unreachable(&ground, &files, path, "path-escapes-base");
        refused(files.write_text(path, ""), "SECURITY writeText write-outside-workspace");
    }
}

/// A grant may be a single file, also through a symlink. Its neighbours are not granted under any name.
#[test]
fn granted_file_grants_nothing_beside_it() {
    let ground = Ground::new();
    ground.put("out/granted", "granted");
    ground.link("lib/link", ground.path("out/granted"));
    for root in ["out/granted", "lib/link"] {
        let granted = ground.text_path(root);
        let files = ground.files_with(|grants| grants.read_roots = vec![ground.path(root)]);
        assert_eq!(files.read_text(&granted).unwrap(), "granted");
        assert_eq!(files.stat(&granted).unwrap().size, 7);
        assert_eq!(files.read_roots(), [ground.text_path("ws"), granted.clone()]);
        for beside in ["out/secret", "out/deep/secret", "out/granted/../secret", "out/grante", "out", "lib"] {
            refused(files.read_text(&ground.text_path(beside)), "SECURITY readText path-escapes-base");
        }
        refused(files.list(&ground.text_path("out")), "SECURITY list path-escapes-base");
        refused(files.write_text(&granted, "x"), "SECURITY writeText write-outside-workspace");
        assert_eq!(ground.content("out/granted"), "granted");
    }
    // Replaced by a symlink after the grant: its target is not granted.
    let files = ground.files_with(|grants| grants.read_roots = vec![ground.path("out/granted")]);
    fs::remove_file(ground.path("out/granted")).unwrap();
    ground.link("out/granted", "secret");
    refused(files.read_text(&ground.text_path("out/granted")), "SECURITY readText path-escapes-base");
}

#[test]
fn workspace_must_be_a_directory() {
    let ground = Ground::new();
    let grants = FileGrants { workspace: ground.path("out/secret"), ..ground.grants() };
    assert_eq!(Files::open(&grants, || false).unwrap_err().reason, "grant-unusable");
}

#[test]
fn symlinks_do_not_lead_out() {
    let ground = Ground::new();
    ground.put("ws/inside/f", "f");
    ground.link("ws/file", "../out/secret");
    ground.link("ws/file-absolute", ground.path("out/secret"));
    ground.link("ws/dir", "../out");
    ground.link("ws/dir-absolute", ground.path("out"));
    ground.link("ws/chain1", "chain2");
    ground.link("ws/chain2", "inside/chain3");
    ground.link("ws/inside/chain3", "../../out/secret");
    ground.link("ws/inside/up", "../..");
    ground.link("ws/root", "/");
    let below_root = format!("root{}", ground.text_path("out/secret"));
    let files = ground.files();
    for path in [
        "file",
        "file-absolute",
        "dir/secret",
        "dir/deep/secret",
        "dir-absolute/secret",
        "chain1",
        "inside/up/out/secret",
        "root/etc/passwd",
        &below_root,
    ] {
        check_unreachable(&ground, &files, path, "path-escapes-base");
    }
    for dir in ["dir", "dir-absolute", "inside/up", "root"] {
        check_unreachable(&ground, &files, dir, "path-escapes-base");
        refused(files.write_text(&format!("{dir}/new"), "x"), "SECURITY writeText write-outside-workspace");
        refused(
            files.write_text(&format!("{dir}/a/b/new"), "x"),
            "SECURITY writeText write-outside-workspace",
        );
    }
    assert!(ground.is_untouched());
    let found = files.find(".", "*", FindOptions::default()).unwrap();
    assert!(found.iter().all(|path| !path.contains("secret")), "{found:?}");
    assert!(files.search_in_files(".", "*", "CANARY", SearchOptions::default()).unwrap().is_empty());
}

#[test]
fn absolute_symlink_back_inside_is_denied() {
    let ground = Ground::new();
    ground.put("ws/a", "a");
    ground.link("ws/l", ground.path("ws/a"));
    refused(ground.files().read_text("l"), "SECURITY readText path-escapes-base");
}

#[test]
fn symlink_loops_and_magic_links_are_denied() {
    let ground = Ground::new();
    ground.link("ws/loop", "loop");
    ground.link("ws/ping", "pong");
    ground.link("ws/pong", "ping");
    ground.link("ws/magic", "/proc/self/root/etc/passwd");
    ground.link("ws/cwd", "/proc/self/cwd");
    let files = ground.files();
    for path in ["loop", "ping", "loop/x", "magic", "cwd/Cargo.toml"] {
        refused(files.read_text(path), "SECURITY readText path-escapes-base");
        assert!(!files.exists(path).unwrap());
    }
    assert_eq!(files.find(".", "*", FindOptions::default()).unwrap().len(), 5);
    // Even if the whole file system is a read root.
    let files = ground.files_with(|grants| grants.read_roots = vec![PathBuf::from("/")]);
    for path in ["/proc/self/root/etc/passwd", "/proc/self/cwd", "/proc/self/fd/0"] {
        assert!(files.stat(path).is_err_and(|error| error.reason == "path-escapes-base"), "{path}");
    }
}

#[test]
fn symlink_is_never_written_through() {
    let ground = Ground::new();
    ground.put("ws/a", "a");
    ground.link("ws/inside", "a");
    ground.link("ws/outside", "../out/secret");
    ground.link("ws/dangling", "../out/new");
    ground.link("ws/dangling-dir", "nowhere");
    let files = ground.files();
    for path in ["inside", "outside", "dangling"] {
        refused(files.write_text(path, "x"), "SECURITY writeText write-through-symlink");
        refused(files.append_text(path, "x"), "SECURITY appendText write-through-symlink");
        refused(files.edit_text(path, "a", "x", Occurrences::All), "SECURITY editText write-through-symlink");
        refused(files.copy("a", path), "SECURITY copy write-through-symlink");
        refused(files.delete(path), "SECURITY delete write-through-symlink");
    }
    refused(files.write_text("dangling-dir/x", "x"), "HELPER_RUNTIME writeText io");
    assert!(ground.is_untouched());
    assert_eq!(ground.content("ws/a"), "a");
}

#[test]
fn write_to_a_hard_link_does_not_change_the_other_name() {
    let ground = Ground::new();
    for write in [
        |files: &Files| files.write_text("hard", "x"),
        |files: &Files| files.append_text("hard", "x"),
        |files: &Files| files.edit_text("hard", "CANARY", "x", Occurrences::All).map(|edited| edited.path),
        |files: &Files| files.copy("plain", "hard"),
        |files: &Files| files.move_("plain", "hard"),
    ] {
        ground.put("ws/plain", "");
        let _ = fs::remove_file(ground.path("ws/hard"));
        fs::hard_link(ground.path("out/secret"), ground.path("ws/hard")).unwrap();
        write(&ground.files()).unwrap();
        assert!(ground.is_untouched());
        assert_ne!(ground.content("ws/hard"), CANARY);
    }
}

#[test]
fn pipes_sockets_and_devices_are_neither_read_nor_waited_for() {
    let ground = Ground::new();
    let ws = fs::File::open(ground.path("ws")).unwrap();
    rustix::fs::mknodat(&ws, "pipe", rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(ground.path("ws/socket")).unwrap();
    let files = ground.files();
    for path in ["pipe", "socket"] {
        refused(files.read_text(path), "INVALID_INPUT readText not-a-file");
        refused(files.line_count(path), "INVALID_INPUT lineCount not-a-file");
        refused(files.append_text(path, "x"), "INVALID_INPUT appendText not-a-file");
        refused(files.write_text(path, "x"), "INVALID_INPUT writeText not-a-file");
        refused(files.move_(path, "x"), "INVALID_INPUT move not-a-file");
        refused(files.copy(path, "x"), "INVALID_INPUT copy copy-source-not-file");
        refused(files.list(path), "INVALID_INPUT list not-a-directory");
        assert!(!files.stat(path).unwrap().directory);
    }
    assert!(files.search_in_files(".", "*", "x", SearchOptions::default()).unwrap().is_empty());
    let files = ground.files_with(|grants| grants.read_roots = vec![PathBuf::from("/dev")]);
    refused(files.read_text("/dev/zero"), "INVALID_INPUT readText not-a-file");
    refused(files.grep("x", "/dev/zero", GrepOptions::default()), "INVALID_INPUT grep not-a-file");
}

#[test]
fn error_message_shows_only_the_requested_path() {
    let ground = Ground::new();
    ground.link("ws/file", ground.path("out/secret"));
    let files = ground.files();
    let host = ground.text_path("");
    for said in everything_said_about(&files, "file").into_iter().chain(everything_said_about(&files, "none"))
    {
        assert!(!said.contains(&host), "{said}");
    }
    let long = files.read_text(&"ab/".repeat(1000)).unwrap_err().message;
    assert!(long.len() < 400, "{long}");
}

#[test]
fn symlink_in_place_of_a_granted_directory_does_not_lead_out() {
    let ground = Ground::new();
    ground.put("ws/real/a", "text");
    ground.link("ws/out", ground.path("out"));
    ground.link("ws/up", "../out");
    ground.link("ws/file", "../out/secret");
    ground.link("ws/inside", "real");
    ground.link("entry", "ws");
    for name in ["out", "out/deep", "up", "file", "../out"] {
        for whole in ["ws", "entry"] {
            let mut base = ground.grants();
            base.pattern_workspace = ground.path(whole);
            let mut root = base.clone();
            base.workspace = ground.path(whole).join(name);
            root.read_roots = vec![ground.path(whole).join(name)];
            for grants in [base, root] {
                let error = Files::open(&grants, || false).unwrap_err();
                assert!(error.message.contains("leads out of the workspace"), "{name}: {error}");
            }
        }
    }
    let inside = ground.files_with(|grants| grants.workspace = ground.path("ws/inside"));
    assert_eq!(inside.read_text("a").unwrap(), "text");
    let named_itself = ground.files_with(|grants| grants.read_roots = vec![ground.path("out")]);
    assert_eq!(named_itself.read_text(&ground.text_path("out/secret")).unwrap(), CANARY);
    assert!(ground.is_untouched());
}
