//! A workspace outside the directory of the configuration.

use std::fs;

use crate::place::Place;

const COUNT: &str = "
name: lines
description: Counts the lines of a file. Returns the number and the name.
classification: read
input: {type: object, required: [path], properties: {path: {type: string, format: path, description: A file.}}}
testInput: {path: notes.md}
handler: {cli: {command: wc, args: [-l, --, '{path}'], cwd: $WORKSPACE}}
capability: {extends: read}
";

#[test]
fn commands_run_in_a_workspace_outside_the_configuration_directory() {
    let place = Place::new();
    let beside = tempfile::tempdir_in(place.path().parent().unwrap()).unwrap();
    fs::write(beside.path().join("notes.md"), "one\n").unwrap();
    let name = beside.path().file_name().unwrap().to_str().unwrap();
    place.configure(&format!("workspace: ../{name}\n"));
    fs::write(place.path().join("tools/lines.yaml"), COUNT).unwrap();
    place.ok(&["publish", "lines"]);
    let counted = place.ok(&["call", "lines", "path=notes.md"]);
    assert!(counted.contains('1'), "{counted}");
}
