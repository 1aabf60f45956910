use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::{
    super::{access::MissingParents, staged_file::StagedFile},
    *,
};

#[test]
fn write_creates_directories_and_replaces() {
    let ground = Ground::new();
    let files = ground.files();
    let path = ground.text_path("ws/a/b/c.txt");
    assert_eq!(files.write_text("a/./b//c.txt", "one").unwrap(), path);
    assert_eq!(files.write_text(&path, "two").unwrap(), path);
    assert_eq!(files.append_text("a/b/c.txt", " three").unwrap(), path);
    assert_eq!(files.append_text("new/d", "d").unwrap(), ground.text_path("ws/new/d"));
    assert_eq!(ground.content("ws/a/b/c.txt"), "two three");
    assert_eq!(ground.content("ws/new/d"), "d");
    assert_eq!(
        files.find(".", "*", FindOptions::default()).unwrap(),
        ["a", "a/b", "a/b/c.txt", "new", "new/d"]
    );
    refused(files.write_text(".", ""), "INVALID_INPUT writeText not-a-file");
    refused(files.write_text("a/b", ""), "INVALID_INPUT writeText not-a-file");
    refused(files.append_text("a/b", ""), "INVALID_INPUT appendText not-a-file");
    refused(files.write_text("new/d/e", ""), "HELPER_RUNTIME writeText io");
}

#[test]
fn replaced_file_keeps_its_mode_and_new_file_is_not_world_writable() {
    let ground = Ground::new();
    ground.put("ws/a", "");
    fs::set_permissions(ground.path("ws/a"), fs::Permissions::from_mode(0o4640)).unwrap();
    let files = ground.files();
    files.write_text("a", "x").unwrap();
    files.append_text("a", "x").unwrap();
    files.write_text("b", "x").unwrap();
    assert_eq!(fs::metadata(ground.path("ws/a")).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(fs::metadata(ground.path("ws/b")).unwrap().mode() & 0o7022, 0);
}

#[test]
fn writes_are_bounded() {
    let ground = Ground::new();
    let files = ground.files_with(|grants| grants.caps.write_bytes = 10);
    files.write_text("a", "1234567890").unwrap();
    refused(files.write_text("a", "12345678901"), "INVALID_INPUT writeText content-too-large");
    refused(files.append_text("a", "1"), "HELPER_RUNTIME appendText file-too-large");
    ground.put("ws/long", "12345678901");
    refused(files.copy("long", "b"), "HELPER_RUNTIME copy file-too-large");
    refused(files.edit_text("a", "1", "22", Occurrences::All), "HELPER_RUNTIME editText file-too-large");
    assert_eq!(ground.content("ws/a"), "1234567890");
    assert_eq!(files.edit_text("a", "1", "2", Occurrences::All).unwrap().replacements, 1);
}

#[test]
fn size_of_a_replacement_is_computed_first() {
    let ground = Ground::new();
    ground.put("ws/a", "x".repeat(1 << 20));
    let result = ground.files().edit_text("a", "x", &"y".repeat(10 << 20), Occurrences::All);
    refused(result, "HELPER_RUNTIME editText file-too-large");
}

#[test]
fn edit_replaces_exactly_the_given_text() {
    let ground = Ground::new();
    ground.put("ws/a", "one two two");
    ground.put("ws/bad", b"\xff");
    let files = ground.files();
    let edited = files.edit_text("a", "one", "1", Occurrences::Only).unwrap();
    assert_eq!(edited, EditResult { path: ground.text_path("ws/a"), replacements: 1 });
    refused(files.edit_text("a", "two", "2", Occurrences::Only), "INVALID_INPUT editText edit-ambiguous");
    refused(files.edit_text("a", "three", "3", Occurrences::All), "INVALID_INPUT editText edit-no-match");
    refused(files.edit_text("a", "", "3", Occurrences::All), "INVALID_INPUT editText edit-old-required");
    refused(files.edit_text("none", "a", "b", Occurrences::All), "INVALID_INPUT editText edit-file-missing");
    refused(files.edit_text("no/ne", "a", "b", Occurrences::All), "INVALID_INPUT editText edit-file-missing");
    refused(files.edit_text("bad", "a", "b", Occurrences::All), "HELPER_RUNTIME editText io");
    refused(files.edit_text(".", "a", "b", Occurrences::All), "INVALID_INPUT editText not-a-file");
    assert_eq!(files.edit_text("a", "two", "2", Occurrences::All).unwrap().replacements, 2);
    assert_eq!(ground.content("ws/a"), "1 2 2");
}

#[test]
fn copy_reads_any_root_and_writes_the_workspace() {
    let ground = Ground::new();
    ground.put("lib/l", b"\xff\x00");
    ground.link("ws/to-a", "a");
    let files = ground.files_with(|grants| grants.read_roots = vec![ground.path("lib")]);
    assert_eq!(files.copy(&ground.text_path("lib/l"), "sub/a").unwrap(), ground.text_path("ws/sub/a"));
    assert_eq!(fs::read(ground.path("ws/sub/a")).unwrap(), b"\xff\x00");
    files.copy("sub/a", "sub/a").unwrap();
    assert_eq!(fs::read(ground.path("ws/sub/a")).unwrap(), b"\xff\x00");
    refused(files.copy("sub", "b"), "INVALID_INPUT copy copy-source-not-file");
    refused(files.copy("none", "b"), "INVALID_INPUT copy copy-source-not-file");
    refused(files.copy("sub/a", &ground.text_path("lib/m")), "SECURITY copy write-outside-workspace");
    refused(files.copy("sub/a", "to-a"), "SECURITY copy write-through-symlink");
}

#[test]
fn move_renames_within_the_workspace() {
    let ground = Ground::new();
    ground.put("ws/a", "a");
    ground.put("ws/b", "b");
    ground.put("ws/d/x", "x");
    ground.link("ws/l", "a");
    let files = ground.files();
    assert_eq!(files.move_("a", "b").unwrap(), ground.text_path("ws/b"));
    assert_eq!(files.move_("d", "new/d2").unwrap(), ground.text_path("ws/new/d2"));
    assert_eq!(ground.content("ws/b") + &ground.content("ws/new/d2/x"), "ax");
    refused(files.move_("a", "c"), "INVALID_INPUT move move-source-missing");
    refused(files.move_("a/b/c", "c"), "INVALID_INPUT move move-source-missing");
    refused(files.move_(".", "c"), "SECURITY move move-workspace-root");
    refused(files.move_("b", "."), "INVALID_INPUT move not-a-file");
    refused(files.move_("l", "c"), "SECURITY move write-through-symlink");
    refused(files.move_("b", "l"), "SECURITY move write-through-symlink");
    refused(files.move_("b", "../c"), "SECURITY move write-outside-workspace");
    refused(files.move_("../out/secret", "c"), "SECURITY move write-outside-workspace");
    refused(files.move_("new", "new/d2/inner"), "HELPER_RUNTIME move io");
    refused(files.move_("b", "new"), "HELPER_RUNTIME move io");
    assert!(ground.is_untouched());
}

#[test]
fn delete_reports_whether_something_existed() {
    let ground = Ground::new();
    ground.put("ws/a", "");
    ground.put("ws/d/e/f", "");
    ground.put("ws/d/.toolgate-left.tmp", "");
    ground.link("ws/d/to-out", ground.path("out"));
    ground.link("ws/l", "a");
    let files = ground.files();
    assert!(files.delete("a").unwrap());
    assert!(!files.delete("a").unwrap());
    assert!(!files.delete("no/ne").unwrap());
    refused(files.delete("d"), "INVALID_INPUT delete delete-is-directory");
    refused(files.delete("."), "INVALID_INPUT delete delete-is-directory");
    refused(files.delete("l"), "SECURITY delete write-through-symlink");
    refused(files.delete_dir("."), "SECURITY deleteDir deletedir-workspace-root");
    refused(files.delete_dir("d/.."), "SECURITY deleteDir deletedir-workspace-root");
    refused(files.delete_dir(&ground.text_path("ws/")), "SECURITY deleteDir deletedir-workspace-root");
    refused(files.delete_dir("d/e/f"), "INVALID_INPUT deleteDir deletedir-not-a-directory");
    refused(files.delete_dir("l"), "SECURITY deleteDir write-through-symlink");
    assert_eq!(files.delete_dir("d").unwrap(), 5);
    assert_eq!(files.delete_dir("d").unwrap(), 0);
    assert_eq!(files.delete_dir("d/e").unwrap(), 0);
    assert!(ground.is_untouched());
}

/// Simulates a process killed between the two steps: nothing is dropped, nothing is renamed.
#[test]
fn interrupted_write_leaves_the_old_content() {
    let ground = Ground::new();
    ground.put("ws/a", "old");
    let files = ground.files();
    let place = files.writable("a").unwrap();
    let target = files.target(&place, MissingParents::MustExist, "a").unwrap().unwrap();
    std::mem::forget(StagedFile::write(&target, None, b"new").unwrap());
    assert_eq!(fs::read_dir(ground.path("ws")).unwrap().count(), 2);
    assert_eq!(files.read_text("a").unwrap(), "old");
    assert_eq!(files.list(".").unwrap(), ["a"]);
    assert!(files.search_in_files(".", "*", "new", SearchOptions::default()).unwrap().is_empty());
    drop(StagedFile::write(&target, None, b"new").unwrap());
    assert_eq!(fs::read_dir(ground.path("ws")).unwrap().count(), 2);
    StagedFile::write(&target, None, b"new").unwrap().commit().unwrap();
    assert_eq!(files.read_text("a").unwrap(), "new");
}

/// A tool sends a few bytes, and the gateway moves the whole file.
#[test]
fn moved_bytes_are_counted_once_also_on_failure() {
    let ground = Ground::new();
    let files = ground.files();
    ground.put("ws/large.txt", "x".repeat(1_000));
    ground.put("ws/binary", vec![0xff; 500]);
    files.copy("large.txt", "copy.txt").unwrap();
    assert_eq!((files.take_moved(), files.take_moved()), (1_000, 0));
    files.append_text("copy.txt", "y").unwrap();
    assert_eq!(files.take_moved(), 1_001);
    files.edit_text("copy.txt", "y", &"z".repeat(11), Occurrences::Only).unwrap();
    assert_eq!(files.take_moved(), 1_011);
    files.read_text("large.txt").unwrap();
    assert_eq!(files.take_moved(), 1_000);
    files.move_("copy.txt", "moved.txt").unwrap();
    assert_eq!(files.take_moved(), 0);
    assert!(files.edit_text("large.txt", "nowhere", "", Occurrences::Only).is_err());
    assert_eq!(files.take_moved(), 1_000);
    assert!(files.read_text("binary").is_err());
    assert_eq!(files.take_moved(), 500);
}
