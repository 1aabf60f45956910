use super::*;

#[test]
fn workspace_is_the_only_read_root_by_default() {
    let ground = Ground::new();
    let files = ground.files();
    assert_eq!(files.workspace(), ground.text_path("ws"));
    assert_eq!(files.read_roots(), [ground.text_path("ws")]);
    let files = ground.files_with(|grants| {
        grants.read_roots =
            vec![ground.path("lib"), ground.path("lib/"), ground.path("ws"), ground.path("none")];
    });
    assert_eq!(files.read_roots(), [ground.text_path("ws"), ground.text_path("lib")]);
    let files = ground.files_with(|grants| grants.read_roots = vec![ground.path("")]);
    assert_eq!(files.read_roots(), [ground.text_path("").trim_end_matches('/')]);
    assert_eq!(files.read_text("../out/secret").unwrap(), CANARY);
}

#[test]
fn file_is_read_under_every_name_in_the_workspace() {
    let ground = Ground::new();
    ground.put("ws/a/b.txt", "text\r\n");
    ground.link("ws/link", "a/../a/b.txt");
    ground.link("ws/folder", "a");
    let files = ground.files();
    let absolute = ground.text_path("ws/a/b.txt");
    for path in
        ["a/b.txt", "./a//b.txt", "a/./b.txt", "a/b.txt/", "a/x/../b.txt", "link", "folder/b.txt", &absolute]
    {
        assert_eq!(files.read_text(path).unwrap(), "text\r\n", "{path}");
        assert!(files.exists(path).unwrap(), "{path}");
    }
    refused(files.read_text("A/b.txt"), "HELPER_RUNTIME readText io");
    refused(files.read_text("~/a"), "HELPER_RUNTIME readText io");
}

#[test]
fn invalid_paths_are_rejected() {
    let ground = Ground::new();
    let files = ground.files();
    refused(files.read_text(""), "INVALID_INPUT readText path-required");
    refused(files.exists(""), "INVALID_INPUT exists path-required");
    refused(files.stat("a\0b"), "INVALID_INPUT stat invalid-path");
    refused(files.write_text("\0", ""), "INVALID_INPUT writeText invalid-path");
    refused(files.list(&"x".repeat(256)), "INVALID_INPUT list invalid-path");
    refused(files.delete(&"x/".repeat(2001)), "INVALID_INPUT delete invalid-path");
    refused(files.read_text("line\nbreak"), "HELPER_RUNTIME readText io");
}

#[test]
fn path_too_long_with_the_workspace_is_an_error() {
    let ground = Ground::new();
    let path = format!("{}/x", "y".repeat(200)).repeat(19);
    refused(ground.files().read_text(&path), "HELPER_RUNTIME readText io");
    refused(
        ground.files().write_text(&"z".repeat(255), "").and_then(|_| ground.files().list(&"z".repeat(255))),
        "INVALID_INPUT list not-a-directory",
    );
}

#[test]
fn only_regular_utf8_files_are_read() {
    let ground = Ground::new();
    ground.put("ws/bad", b"abc\xff");
    ground.put("ws/empty", "");
    let files = ground.files();
    refused(files.read_text("bad"), "HELPER_RUNTIME readText io");
    assert!(files.read_text("bad").unwrap_err().message.contains("byte 3"));
    refused(files.read_text("."), "INVALID_INPUT readText not-a-file");
    refused(files.read_text("empty/x"), "HELPER_RUNTIME readText io");
    assert_eq!(files.read_text("empty").unwrap(), "");
}

#[test]
fn listing_is_sorted_and_relative_inside_the_workspace() {
    let ground = Ground::new();
    for file in ["ws/b", "ws/a", "ws/sub/c", "lib/l", "ws/.toolgate-0123456789abcdef.tmp"] {
        ground.put(file, "");
    }
    let files = ground.files_with(|grants| grants.read_roots = vec![ground.path("lib")]);
    assert_eq!(files.list(".").unwrap(), ["a", "b", "sub"]);
    assert_eq!(files.list("sub/").unwrap(), ["sub/c"]);
    assert_eq!(files.list(&ground.text_path("ws/sub")).unwrap(), ["sub/c"]);
    assert_eq!(files.list("../lib").unwrap(), [ground.text_path("lib/l")]);
    assert_eq!(files.list("none").unwrap(), Vec::<String>::new());
    refused(files.list("a"), "INVALID_INPUT list not-a-directory");
}

#[test]
fn names_that_are_not_utf8_are_listed_with_replacement_characters() {
    use std::os::unix::ffi::OsStrExt as _;
    let ground = Ground::new();
    fs::write(ground.path("ws").join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    assert_eq!(ground.files().list(".").unwrap(), ["caf\u{fffd}"]);
}

#[test]
fn stat_returns_size_time_and_kind() {
    let ground = Ground::new();
    ground.put("ws/a", "12345");
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123);
    fs::File::options().write(true).open(ground.path("ws/a")).unwrap().set_modified(time).unwrap();
    let files = ground.files();
    let stat = FileStat { size: 5, mtime: 1_700_000_000_123, directory: false };
    assert_eq!(files.stat("a").unwrap(), stat);
    assert!(files.stat(".").unwrap().directory);
    refused(files.stat("none"), "HELPER_RUNTIME stat io");
}

#[test]
fn file_name_may_look_like_a_deleted_file() {
    let ground = Ground::new();
    ground.put("ws/notes (deleted)", "kept");
    assert_eq!(ground.files().read_text("notes (deleted)").unwrap(), "kept");
}

#[test]
fn large_file_is_rejected_before_it_is_read() {
    let ground = Ground::new();
    fs::File::create(ground.path("ws/sparse")).unwrap().set_len(1 << 40).unwrap();
    ground.put("ws/fits", "1234");
    let files = ground.files();
    refused(files.read_text("sparse"), "HELPER_RUNTIME readText file-too-large");
    refused(files.copy("sparse", "b"), "HELPER_RUNTIME copy file-too-large");
    refused(files.append_text("sparse", "b"), "HELPER_RUNTIME appendText file-too-large");
    refused(files.line_count("sparse"), "HELPER_RUNTIME lineCount line-too-long");
    let files = ground.files_with(|grants| grants.caps.read_bytes = 4);
    assert_eq!(files.read_text("fits").unwrap(), "1234");
    ground.put("ws/fits", "12345");
    refused(files.read_text("fits"), "HELPER_RUNTIME readText file-too-large");
}

#[test]
fn without_rights_nothing_is_read_or_written() {
    let ground = Ground::new();
    ground.put("ws/a", "a");
    let reader = ground.files_with(|grants| grants.rights = FileRights::Read);
    refused(reader.write_text("b", ""), "SECURITY writeText write-not-granted");
    refused(reader.delete("a"), "SECURITY delete write-not-granted");
    refused(reader.copy("a", "b"), "SECURITY copy write-not-granted");
    let writer = ground.files_with(|grants| grants.rights = FileRights::Write);
    refused(writer.read_text("a"), "SECURITY readText read-not-granted");
    refused(writer.exists("a"), "SECURITY exists read-not-granted");
    refused(writer.copy("a", "b"), "SECURITY copy read-not-granted");
    writer.write_text("b", "b").unwrap();
    assert_eq!(reader.read_text("b").unwrap(), "b");
}

#[test]
fn unusable_workspace_is_an_error() {
    let ground = Ground::new();
    for workspace in [ground.path("none"), PathBuf::from("ws"), ground.path("out/secret")] {
        let grants = FileGrants { workspace, ..ground.grants() };
        refused(Files::open(&grants, || false), "HELPER_RUNTIME safety.fs grant-unusable");
    }
}

#[test]
fn finished_call_stops() {
    let ground = Ground::new();
    ground.put("ws/a", "a\n");
    let files = Files::open(&ground.grants(), || true).unwrap();
    refused(files.grep("a", "a", GrepOptions::default()), "HELPER_RUNTIME grep interrupted");
    refused(files.find(".", "*", FindOptions::default()), "HELPER_RUNTIME find interrupted");
    refused(files.write_text("b", ""), "HELPER_RUNTIME writeText interrupted");
    refused(files.delete_dir("."), "SECURITY deleteDir deletedir-workspace-root");
    assert_eq!(fs::read_dir(ground.path("ws")).unwrap().count(), 1);
}

#[test]
fn too_long_real_path_is_reported() {
    let ground = Ground::new();
    let name = "y".repeat(250);
    let mut dir = fs::File::open(ground.path("ws")).unwrap();
    for _ in 0..18 {
        rustix::fs::mkdirat(&dir, &*name, rustix::fs::Mode::RWXU).unwrap();
        dir = kernel::child_folder(&dir, name.as_ref()).unwrap();
    }
    ground.put("ws/zzz", "hit");
    ground.link("ws/half", format!("{name}/").repeat(10));
    let files = ground.files();
    refused(files.stat(&format!("half/{}", format!("{name}/").repeat(8))), "INVALID_INPUT stat invalid-path");
    assert_eq!(files.search_in_files(".", "*", "hit", SearchOptions::default()).unwrap().len(), 1);
}

#[test]
fn host_without_openat2_is_reported() {
    for errno in [rustix::io::Errno::NOSYS, rustix::io::Errno::PERM] {
        let fault = kernel::unsupported(&errno.into()).unwrap();
        refused::<()>(Err(fault.by("safety.fs.readText")), "HELPER_RUNTIME readText host-unsupported");
    }
    assert!(kernel::unsupported(&rustix::io::Errno::ACCESS.into()).is_none());
}
