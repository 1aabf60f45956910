//! A path is judged and shown to a person, and then made to lead elsewhere before the approval.

use super::*;

/// The files of a call whose arguments name these paths.
fn judged(ground: &Ground, paths: &[(&str, FileAccess)]) -> Files {
    let looking = ground.files();
    let judged: Vec<JudgedPath> = paths
        .iter()
        .map(|(asked, wanted)| JudgedPath {
            asked: (*asked).to_owned(),
            real: looking.locate(asked, *wanted).unwrap().real,
        })
        .collect();
    ground.files().restrict_to(&judged).unwrap()
}

fn swap_for_link(ground: &Ground, inside: &str, to: &str) {
    fs::rename(ground.path(inside), ground.path("aside")).unwrap();
    ground.link(inside, to);
}

#[test]
fn directory_replaced_by_symlink_is_not_written_through() {
    let ground = Ground::new();
    ground.put("ws/a/b.yml", "plain");
    ground.put("ws/.github/b.yml", "plain");
    let files = judged(&ground, &[("a/b.yml", FileAccess::Write), ("a/new/c.yml", FileAccess::Write)]);
    swap_for_link(&ground, "ws/a", ".github");
    for path in ["a/b.yml", "./a//b.yml", "a/x/../b.yml", &ground.text_path("ws/a/b.yml")] {
        refused(files.edit_text(path, "plain", "gone", Occurrences::Only), "SECURITY editText path-changed");
        refused(files.write_text(path, "gone"), "SECURITY writeText path-changed");
        refused(files.append_text(path, "gone"), "SECURITY appendText path-changed");
        refused(files.delete(path), "SECURITY delete path-changed");
        refused(files.move_(path, "moved"), "SECURITY move path-changed");
        refused(files.copy(path, "copied"), "SECURITY copy path-changed");
        refused(files.read_text(path), "SECURITY readText path-changed");
        assert!(!files.exists(path).unwrap());
    }
    ground.put("ws/other", "other");
    refused(files.move_("other", "a/b.yml"), "SECURITY move path-changed");
    refused(files.copy("other", "a/b.yml"), "SECURITY copy path-changed");
    refused(files.write_text("a/new/c.yml", "x"), "SECURITY writeText path-changed");
    assert_eq!(ground.content("ws/.github/b.yml"), "plain");
    assert!(!ground.path("ws/.github/new").exists(), "no folder is made there either");
}

#[test]
fn file_replaced_by_symlink_is_not_read_through() {
    let ground = Ground::new();
    ground.put("ws/notes", "plain");
    ground.put("ws/.env", CANARY);
    let files = judged(&ground, &[("notes", FileAccess::Read), ("later", FileAccess::Read)]);
    swap_for_link(&ground, "ws/notes", ".env");
    ground.link("ws/later", ".env");
    for path in ["notes", "later"] {
        for said in everything_said_about(&files, path) {
            assert!(!said.contains(CANARY), "{path}: {said}");
        }
        refused(files.read_text(path), "SECURITY readText path-changed");
    }
}

#[test]
fn path_below_a_judged_directory_stays_in_it() {
    let ground = Ground::new();
    ground.put("ws/a/b.yml", "plain");
    ground.put("ws/.github/b.yml", CANARY);
    let files = judged(&ground, &[("a", FileAccess::Write)]);
    assert_eq!(files.read_text("a/b.yml").unwrap(), "plain");
    files.write_text("a/new/c.yml", "x").unwrap();
    swap_for_link(&ground, "ws/a", ".github");
    refused(files.read_text("a/b.yml"), "SECURITY readText path-changed");
    refused(files.list("a"), "SECURITY list path-changed");
    refused(files.write_text("a/d/e.yml", "x"), "SECURITY writeText path-changed");
    assert_eq!(ground.content("ws/.github/b.yml"), CANARY);
    assert!(!ground.path("ws/.github/d").exists());
}

/// Nothing has changed, so the message must not say so. A symlink to a blocked path is denied as blocked.
#[test]
fn symlink_out_of_a_judged_directory_is_reported_as_such() {
    let ground = Ground::new();
    ground.put("ws/docs/a.md", "plain");
    ground.put("ws/README.md", "shared");
    ground.put("ws/lib/b.md", "shared");
    ground.put("ws/.env", CANARY);
    ground.link("ws/docs/README.md", "../README.md");
    ground.link("ws/docs/lib", "../lib");
    ground.link("ws/docs/inside.md", "a.md");
    ground.link("ws/docs/env", "../.env");
    let look = ground.files().locate("docs", FileAccess::Read).unwrap();
    let judged = [JudgedPath { asked: "docs".to_owned(), real: look.real }];
    let files = ground.files_with(|grants| grants.blocked.push(pattern("$WORKSPACE/.env")));
    let files = files.restrict_to(&judged).unwrap();
    refused(files.stat("docs/README.md"), "SECURITY stat path-outside-argument");
    refused(files.read_text("docs/lib/b.md"), "SECURITY readText path-outside-argument");
    refused(files.write_text("docs/lib/c.md", "x"), "SECURITY writeText path-outside-argument");
    refused(files.write_text("docs/lib/new/c.md", "x"), "SECURITY writeText path-outside-argument");
    refused(files.stat("docs/env"), "SECURITY stat path-blocked");
    assert!(!ground.path("ws/lib/c.md").exists() && !ground.path("ws/lib/new").exists());
    assert_eq!(files.read_text("docs/inside.md").unwrap(), "plain");
    let files = self::judged(&ground, &[("docs", FileAccess::Read), ("docs/README.md", FileAccess::Read)]);
    assert_eq!(files.read_text("docs/README.md").unwrap(), "shared", "named, it is judged by itself");
}

/// A path that still leads to the same place stays usable, also if this call or another replaces the file.
#[test]
fn unchanged_path_stays_usable() {
    let ground = Ground::new();
    ground.put("ws/real/b.yml", "plain");
    ground.link("ws/a", "real");
    let paths =
        [("a/b.yml", FileAccess::Write), ("a/new/c.yml", FileAccess::Write), ("a/none", FileAccess::Read)];
    let files = judged(&ground, &paths);
    ground.files().write_text("real/b.yml", "other plain").unwrap();
    files.edit_text("a/b.yml", "plain", "edited", Occurrences::Only).unwrap();
    assert_eq!(files.read_text("a/b.yml").unwrap(), "other edited");
    assert!(files.delete("a/b.yml").unwrap());
    files.write_text("a/b.yml", "again").unwrap();
    files.write_text("a/new/c.yml", "made").unwrap();
    files.write_text("a/none", "made").unwrap();
    assert_eq!(files.read_text("a/none").unwrap(), "made");
    // Paths that the arguments do not name are not compared.
    assert_eq!(files.read_text("real/b.yml").unwrap(), "again");
    files.write_text("elsewhere/x", "x").unwrap();
}

#[test]
fn write_to_a_symlink_is_denied() {
    let ground = Ground::new();
    ground.put("ws/real", "plain");
    ground.link("ws/link", "real");
    let files = judged(&ground, &[("link", FileAccess::Write)]);
    assert_eq!(files.read_text("link").unwrap(), "plain");
    refused(files.write_text("link", "x"), "SECURITY writeText write-through-symlink");
}
