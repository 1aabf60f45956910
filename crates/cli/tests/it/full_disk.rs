//! Disks that are full or read-only.

use std::process::Command;

#[test]
fn full_disk_is_named_with_a_remedy() {
    let script = r#"
        mount -t tmpfs -o size=900k tmpfs "$1" && cd "$1" || exit 9
        "$0" init . --preset none >/dev/null
        head -c 5000000 /dev/zero > filler 2>/dev/null
        echo "new: $("$0" new x 2>&1)"
        echo "first: $("$0" token create a 2>&1)"
        rm filler; "$0" token create b >/dev/null 2>&1 || exit 8
        head -c 5000000 /dev/zero > filler 2>/dev/null
        echo "later: $("$0" token create c 2>&1)"
    "#;
    let said = run_in_new_mounts(script);
    for part in ["new: ", "first: ", "later: "] {
        let line = said.lines().find(|line| line.starts_with(part)).unwrap();
        assert!(line.contains("the disk is full; free some space"), "{line}");
    }
}

/// The gateway's state stores publications, so the tools may be mounted read-only.
#[test]
fn tools_on_a_read_only_mount_are_published() {
    let script = r#"
        cd "$1" && "$0" init . --preset none >/dev/null && "$0" new letters --dir tools >/dev/null || exit 9
        grep -q 'draft: true' tools/letters.yaml || echo 'draft: true' >> tools/letters.yaml
        mount --bind tools tools && mount -o remount,ro,bind tools || exit 8
        "$0" publish letters --yes 2>&1 || exit 7
        "$0" list 2>&1
        umount tools
        "$0" unpublish letters >/dev/null && "$0" publish letters --yes 2>&1
    "#;
    let said = run_in_new_mounts(script);
    assert!(said.contains("still has `draft: true`") && said.contains("published  letters"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("letters") && line.contains("ACTIVE")), "{said}");
    assert!(said.contains("edited     ") && said.contains("`draft` is now false"), "{said}");
}

/// Runs a script in a mount namespace. `$0` is the program, `$1` an empty directory.
fn run_in_new_mounts(script: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    let run = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_toolgate")])
        .arg(place.path())
        .env_remove("TOOLGATE_CONFIG")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    said
}
