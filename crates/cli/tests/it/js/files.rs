//! `safety.fs`: every function and option, exact results and error slugs.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::gateway::{Gateway, NoSecrets, document};

/// Runs `code` with read and write access. `f` is `safety.fs`.
fn run(gateway: &Gateway, code: &str) -> Result<Value, String> {
    let mut tool = document(&format!("const f = safety.fs; {code}"));
    tool["sandboxOverrides"] = json!({ "fileRead": true, "fileWrite": true });
    match gateway.run(&gateway.tool(&tool), &json!({}), &NoSecrets).outcome {
        Ok(Some(value)) => Ok(value),
        other => Err(format!("{other:?}")),
    }
}

#[track_caller]
fn check(gateway: &Gateway, rows: &[(&str, Value)]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(call, expected)| match run(gateway, &format!("return {call}")) {
            Ok(value) if value == *expected => None,
            other => Some(format!("{call}: expected {expected}, got {other:?}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks that each call throws this error and names its function.
#[track_caller]
fn check_throws(gateway: &Gateway, calls: &[&str], kind: &str, reason: &str) {
    for call in calls {
        let code = format!("try {{ return f.{call} }} catch (e) {{ return [e.kind, e.reason, e.helper] }}");
        let told = run(gateway, &code).unwrap();
        let function = call.split('(').next().unwrap();
        let helper = format!("safety.fs.{function}");
        assert_eq!(told, json!([kind, reason, helper]), "{call}");
    }
}

fn with_files() -> Gateway {
    let gateway = Gateway::new();
    let at = |path: &str| gateway.workspace().join(path);
    fs::create_dir_all(at("tree/deep/er")).unwrap();
    for (path, text) in [
        ("words.txt", "b\nB\na\n10\n9\nb\n"),
        ("cells.csv", "a,b,c\nd,e\n"),
        ("tabs.tsv", "1\t2\t3\n"),
        ("blanks.txt", "x  y   z\n"),
        ("tree/one.txt", "nothing\nneedle 1\nneedle 2\n"),
        ("tree/deep/two.txt", "NEEDLE\n"),
        ("tree/deep/er/three.md", "needle\n"),
    ] {
        fs::write(at(path), text).unwrap();
    }
    let file = fs::File::open(at("notes.txt")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123)).unwrap();
    gateway
}

#[test]
fn read_functions_return_their_documented_shapes() {
    let gateway = with_files();
    let workspace = fs::canonicalize(gateway.workspace()).unwrap();
    check(
        &gateway,
        &[
            ("f.workspace()", json!(workspace)),
            ("f.readRoots()", json!([workspace])),
            ("f.readText('notes.txt')", json!("hello\nworld\n")),
            ("f.readText(f.workspace() + '/notes.txt')", json!("hello\nworld\n")),
            ("f.list('tree')", json!(["tree/deep", "tree/one.txt"])),
            ("f.list('nowhere')", json!([])),
            (
                "JSON.stringify(f.list()) === JSON.stringify(f.list('.')) && f.list().includes('tree')",
                json!(true),
            ),
            ("[f.exists('notes.txt'), f.exists('tree'), f.exists('nowhere')]", json!([true, true, false])),
            (
                "f.stat('notes.txt')",
                json!({ "size": 12, "mtime": 1_700_000_000_123_u64, "directory": false }),
            ),
            ("Object.keys(f.stat('tree')).sort()", json!(["directory", "mtime", "size"])),
            ("f.stat('tree').directory", json!(true)),
            ("f.lineCount('words.txt')", json!(6)),
            ("f.slice('words.txt', 1, 3)", json!(["B", "a"])),
            ("f.slice('words.txt', -2, 99)", json!(["9", "b"])),
            ("f.slice('words.txt', 0, -4)", json!(["b", "B"])),
            ("f.slice('words.txt', 3, 1)", json!([])),
        ],
    );
}

#[test]
fn search_options_work() {
    let gateway = with_files();
    let hit = |file: &str, line: u64, text: &str| json!({ "file": file, "line": line, "text": text });
    check(
        &gateway,
        &[
            ("f.grep('B', 'words.txt')", json!(["B"])),
            ("f.grep('B', 'words.txt', {})", json!(["B"])),
            ("f.grep('B', 'words.txt', null)", json!(["B"])),
            ("f.grep('B', 'words.txt', { caseInsensitive: true })", json!(["b", "B", "b"])),
            ("f.grep('B', 'words.txt', { caseInsensitive: false })", json!(["B"])),
            ("f.grep('b', 'words.txt', { limit: 1 })", json!(["b"])),
            ("f.grep('b', 'words.txt', { limit: 0 })", json!(["b", "b"])),
            ("f.grep('^b$', 'words.txt', { numbered: true })", json!(["1:b", "6:b"])),
            (
                "f.grep('B', 'words.txt', { caseInsensitive: true, limit: 2, numbered: true })",
                json!(["1:b", "2:B"]),
            ),
            (
                "f.find('tree').sort()",
                json!([
                    "tree/deep",
                    "tree/deep/er",
                    "tree/deep/er/three.md",
                    "tree/deep/two.txt",
                    "tree/one.txt"
                ]),
            ),
            ("f.find('tree', '*.txt').sort()", json!(["tree/deep/two.txt", "tree/one.txt"])),
            ("f.find('tree', '*', { maxDepth: 1 }).sort()", json!(["tree/deep", "tree/one.txt"])),
            ("f.find('tree', undefined, { type: 'dir' }).sort()", json!(["tree/deep", "tree/deep/er"])),
            (
                "f.find('tree', '*', { type: 'file', maxDepth: 2 }).sort()",
                json!(["tree/deep/two.txt", "tree/one.txt"]),
            ),
            (
                "f.searchInFiles('tree', '*.txt', 'needle')",
                json!([hit("tree/one.txt", 2, "needle 1"), hit("tree/one.txt", 3, "needle 2")]),
            ),
            (
                "f.searchInFiles('tree', 'two*', 'needle', { caseInsensitive: true })",
                json!([hit("tree/deep/two.txt", 1, "NEEDLE")]),
            ),
            (
                "f.searchInFiles('tree', '*', 'needle', { maxDepth: 1, limit: 1 })",
                json!([hit("tree/one.txt", 2, "needle 1")]),
            ),
            ("f.searchInFiles('tree', '*', 'needle').length", json!(3)),
            ("f.searchInFiles('tree', '*', 'needle', { maxDepth: 1 }).length", json!(2)),
        ],
    );
}

/// Every option alone gives a different result, so none can be mistaken for another.
#[test]
fn cut_and_sort_options_work() {
    let gateway = with_files();
    check(
        &gateway,
        &[
            ("f.cut('cells.csv', { fields: [1, 3], delimiter: ',' })", json!(["a,c", "d,"])),
            ("f.cut('cells.csv', { fields: [3, 1], delimiter: ',' })", json!(["c,a", ",d"])),
            ("f.cut('cells.csv', { fields: [1] })", json!(["a,b,c", "d,e"])),
            ("f.cut('tabs.tsv', { fields: [2, 3] })", json!(["2\t3"])),
            ("f.cut('blanks.txt', { fields: [2, 3], delimiter: ' +', regex: true })", json!(["y\tz"])),
            ("f.cut('blanks.txt', { fields: [1, 2], delimiter: ' +', regex: false })", json!(["x  y   z +"])),
            ("f.sort('words.txt')", json!(["10", "9", "B", "a", "b", "b"])),
            ("f.sort('words.txt', {})", json!(["10", "9", "B", "a", "b", "b"])),
            ("f.sort('words.txt', { reverse: true })", json!(["b", "b", "a", "B", "9", "10"])),
            ("f.sort('words.txt', { numeric: true })", json!(["9", "10", "b", "B", "a", "b"])),
            ("f.sort('words.txt', { caseInsensitive: true })", json!(["10", "9", "a", "b", "B", "b"])),
            ("f.sort('words.txt', { unique: true })", json!(["10", "9", "B", "a", "b"])),
            ("f.sort('words.txt', { numeric: true, reverse: true })", json!(["10", "9", "b", "B", "a", "b"])),
            ("f.sort('words.txt', { unique: true, reverse: true })", json!(["b", "a", "B", "9", "10"])),
            (
                "f.sort('words.txt', { unique: false, reverse: false })",
                json!(["10", "9", "B", "a", "b", "b"]),
            ),
        ],
    );
}

#[test]
fn optional_arguments_may_be_missing_null_or_undefined() {
    let gateway = with_files();
    check(
        &gateway,
        &[
            ("f.slice('words.txt', 4)", json!(["9", "b"])),
            ("f.slice('words.txt', null, 1)", json!(["b"])),
            ("f.slice('cells.csv', undefined, undefined)", json!(["a,b,c", "d,e"])),
            ("f.find(undefined, 'three.md')", json!(["tree/deep/er/three.md"])),
            ("f.find('tree', null, null).length", json!(5)),
            (
                "f.searchInFiles(null, null, 'NEEDLE', null).map((hit) => hit.file)",
                json!(["tree/deep/two.txt"]),
            ),
            (
                "(f.writeText('empty.txt'), f.appendText('empty.txt', null), f.readText('empty.txt'))",
                json!(""),
            ),
        ],
    );
}

#[test]
fn write_functions_report_what_they_did() {
    let gateway = with_files();
    let workspace = fs::canonicalize(gateway.workspace()).unwrap();
    let absolute = |path: &str| workspace.join(path).to_string_lossy().into_owned();
    // In order: each row depends on the one before.
    check(
        &gateway,
        &[
            ("f.writeText('new/a.txt', 'x x')", json!(absolute("new/a.txt"))),
            ("f.appendText('new/a.txt', '\\n')", json!(absolute("new/a.txt"))),
            ("f.readText('new/a.txt')", json!("x x\n")),
            (
                "f.editText('new/a.txt', 'x', 'y', true)",
                json!({ "path": absolute("new/a.txt"), "replacements": 2 }),
            ),
            (
                "f.editText('new/a.txt', 'y', 'z', { replaceAll: true })",
                json!({ "path": absolute("new/a.txt"), "replacements": 2 }),
            ),
            (
                "f.editText('new/a.txt', 'z z', '1')",
                json!({ "path": absolute("new/a.txt"), "replacements": 1 }),
            ),
            ("f.copy('new/a.txt', 'new/b.txt')", json!(absolute("new/b.txt"))),
            ("f.move('new/b.txt', 'new/c.txt')", json!(absolute("new/c.txt"))),
            ("f.list('new')", json!(["new/a.txt", "new/c.txt"])),
            ("f.readText('new/c.txt')", json!("1\n")),
            ("[f.delete('new/c.txt'), f.delete('new/c.txt')]", json!([true, false])),
            ("f.deleteDir('nowhere')", json!(0)),
            // Three files, two directories, and the directory itself.
            ("f.deleteDir('tree')", json!(6)),
            ("f.exists('tree')", json!(false)),
        ],
    );
}

#[test]
fn invalid_arguments_are_refused_with_a_slug() {
    let gateway = with_files();
    let missing = [
        "readText()",
        "readText(null)",
        "exists()",
        "stat()",
        "grep('a')",
        "grep(undefined, 'notes.txt')",
        "lineCount()",
        "slice()",
        "cut()",
        "sort()",
        "searchInFiles('.', '*')",
        "searchInFiles('.', '*', null)",
        "writeText()",
        "appendText(null)",
        "editText('a', 'b')",
        "copy('a')",
        "move('a')",
        "delete()",
        "deleteDir()",
    ];
    check_throws(&gateway, &missing, "INVALID_INPUT", "missing-args");
    let fields = ["cut('cells.csv')", "cut('cells.csv', {})", "cut('cells.csv', { fields: null })"];
    check_throws(&gateway, &fields, "INVALID_INPUT", "fields-required");
    let no_array = ["cut('cells.csv', { fields: 1 })", "cut('cells.csv', { fields: '1,2' })"];
    check_throws(&gateway, &no_array, "INVALID_INPUT", "fields-not-array");
    check_throws(&gateway, &["cut('cells.csv', { fields: [] })"], "INVALID_INPUT", "cut-fields-required");
    let options = [
        "grep('a', 'notes.txt', 'i')",
        "grep('a', 'notes.txt', ['i'])",
        "grep('a', 'notes.txt', { limit: -1 })",
        "cut('cells.csv', 'fields')",
        "cut('cells.csv', [1])",
        "sort('words.txt', true)",
        "find('tree', '*', 1)",
        "find('tree', '*', { type: 'link' })",
        "searchInFiles('tree', '*', 'needle', 7)",
    ];
    check_throws(&gateway, &options, "INVALID_INPUT", "invalid-options");
    let arguments =
        ["slice('notes.txt', 'a', 'b')", "readText({})", "grep('a', 'notes.txt', { limit: 'all' })"];
    check_throws(&gateway, &arguments, "INVALID_INPUT", "invalid-argument");
}
