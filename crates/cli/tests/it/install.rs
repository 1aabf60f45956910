//! `make install` installs the program and reports if its directory is not on the PATH.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Runs `scripts/install` with only these environment variables.
#[track_caller]
fn install(variables: &[(&str, &Path)]) -> String {
    let run = Command::new(root().join("scripts/install"))
        .arg(env!("CARGO_BIN_EXE_toolgate"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn installed_program_runs_and_a_directory_off_the_path_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let (prefix, bin) = (place.path(), place.path().join("bin"));
    let said = install(&[("PREFIX", prefix)]);
    assert!(said.contains(&format!("{} is not on your PATH", bin.display())), "{said}");
    assert!(said.contains("export PATH="), "{said}");
    let program = bin.join("toolgate");
    assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
    let version = Command::new(&program).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("toolgate "));

    let path = PathBuf::from(format!("{}:/usr/bin:/bin", bin.display()));
    let said = install(&[("PREFIX", prefix), ("PATH", &path)]);
    assert!(!said.contains("PATH."), "{said}");
}

#[test]
fn staged_install_goes_below_destdir() {
    let place = tempfile::tempdir().unwrap();
    let said = install(&[("PREFIX", Path::new("/opt/tg")), ("DESTDIR", place.path())]);
    assert!(place.path().join("opt/tg/bin/toolgate").is_file());
    assert!(!said.contains("PATH"), "{said}");
}

#[test]
fn make_install_builds_and_calls_the_script() {
    let make = Command::new("make").args(["--dry-run", "install"]).current_dir(root()).output().unwrap();
    let steps = String::from_utf8(make.stdout).unwrap();
    assert!(steps.contains("build --release") && steps.contains("scripts/install"), "{steps}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
