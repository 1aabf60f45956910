use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[track_caller]
fn check_dotenv(line: &str, expect: Option<&str>) {
    assert_eq!(dotenv_value(line, "KEY"), expect, "{line}");
}

#[test]
fn dotenv_lines_are_read_without_expansion() {
    check_dotenv("KEY=value", Some("value"));
    check_dotenv("  export KEY = 'a b' ", Some("a b"));
    check_dotenv("KEY=\"a=b#c\"", Some("a=b#c"));
    check_dotenv("KEY=$(id) ${HOME}", Some("$(id) ${HOME}"));
    check_dotenv("KEY='", Some("'"));
    check_dotenv("# KEY=value", None);
    check_dotenv("KEYS=value", None);
    check_dotenv("KEY", None);
}

#[test]
fn file_provider_reads_a_directory_or_a_dotenv_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("KEY"), "value\n").unwrap();
    fs::write(dir.path().join("secret"), "other").unwrap();
    let files = FileSecrets { path: dir.path().to_owned() };
    assert_eq!(files.get("KEY").unwrap().as_str(), "value");
    for name in ["MISSING", "secret", "../secret", ""] {
        assert!(files.get(name).is_none(), "{name}");
    }
    let dotenv = dir.path().join(".env");
    fs::write(&dotenv, "KEY=old\nKEY=new\n").unwrap();
    assert_eq!(FileSecrets { path: dotenv }.get("KEY").unwrap().as_str(), "new");
}

fn script(dir: &tempfile::TempDir, text: &str) -> String {
    let path = dir.path().join("provider");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.display().to_string()
}

#[test]
fn command_provider_gets_the_name_as_one_argument_and_few_variables() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let program = script(
        &dir,
        &format!("echo run >> '{}'; echo \"$#:$2:${{CARGO_MANIFEST_DIR-unset}}\"", log.display()),
    );
    let argv = vec![program, "read".to_owned(), "op://vault/{name} $(id)".to_owned()];
    let command = CommandSecrets::new(argv, Vec::new(), Duration::from_mins(1), Vec::new());
    assert!(command.cached("KEY").is_none());
    for _ in 0..3 {
        assert_eq!(command.get("KEY").unwrap().as_str(), "2:op://vault/KEY $(id):unset");
    }
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1, "the answer is kept in memory");
    command.forget();
    assert!(command.get("KEY").is_some() && command.get("bad name").is_none());
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 2);
}

#[test]
fn failing_or_missing_program_is_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let failing = script(&dir, "echo half-a-secret; exit 3");
    for program in [failing, "/nonexistent/program".to_owned()] {
        let command =
            CommandSecrets::new(vec![program, "{name}".to_owned()], Vec::new(), Duration::ZERO, Vec::new());
        assert!(command.get("KEY").is_none());
    }
}

/// A tool that writes files could otherwise plant a program that the gateway runs.
#[test]
fn program_in_the_workspace_is_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let program = script(&dir, "echo planted");
    let name = Path::new(&program).file_name().unwrap().to_str().unwrap();
    let found =
        |apart_from: &[PathBuf]| super::super::program::find_in(name, dir.path().as_os_str(), apart_from);
    assert_eq!(found(&[]), Some(dir.path().join(name)));
    assert_eq!(found(&[dir.path().to_owned()]), None);
    assert_eq!(found(&[dir.path().parent().unwrap().to_owned()]), None);
}
