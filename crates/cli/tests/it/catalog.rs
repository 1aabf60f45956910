//! Every shipped tool passes its test run, in the sandbox, on a copy of the fixtures.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use crate::place::Place;

#[test]
fn every_shipped_tool_passes() {
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog");
    let needs_more = fs::read_to_string(catalog.join("needs-more.txt")).unwrap();
    let skipped: Vec<&str> =
        needs_more.lines().filter(|line| !line.starts_with('#')).map(str::trim).collect();
    let workspace = tempfile::tempdir().unwrap();
    copy(&catalog.join("fixtures"), workspace.path());
    let mut files = Vec::new();
    let folders = fs::read_dir(catalog.join("tools")).unwrap().map(|folder| folder.unwrap().path());
    for folder in folders.chain([catalog.join("commands")]) {
        for file in fs::read_dir(folder).unwrap() {
            let file = file.unwrap().path();
            if !skipped.contains(&file.file_stem().unwrap().to_string_lossy().as_ref()) {
                files.push(file);
            }
        }
    }
    files.sort();
    assert!(files.len() >= 40);
    let output = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .arg("test")
        .args(&files)
        .arg("--workspace")
        .arg(workspace.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(&format!("{} tools passed, 0 failed", files.len())), "{said}");
}

#[test]
fn a_shipped_name_is_reserved() {
    let place = Place::new();
    place.write_tool("slugify", &json!({}));
    let said = place.fails(&["list"], 1);
    assert!(said.contains("is the name of a shipped tool and this is another one"), "{said}");
    place.fails(&["call", "slugify", "text=hi"], 1);
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = path.file_name().unwrap();
        let target = to.join(if name == "dot-git" { ".git".as_ref() } else { name });
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
