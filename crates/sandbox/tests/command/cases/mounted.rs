//! Tests that hidden paths are hidden at every mount of the same files.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, ExitCode},
};

use toolgate_sandbox::{Access, JailKind};

use crate::driver::{MOUNTER, PLACED, Tier, bind, finish, folder, is_root, jail, program};

pub fn hidden(tier: Tier) {
    let folder = folder();
    for file in ["secret/key", "secret/deep/key", "work/free/plain", "work/key", "work/whole/none"] {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, if file.starts_with("secret") { "secret" } else { "plain " }).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    }
    // In its own mount namespace, so the host's mounts stay unchanged.
    let mut mounter = Command::new("unshare");
    mounter.args(["--mount", "--propagation", "private"]).env(PLACED, "1");
    if !is_root() {
        mounter.arg("--map-root-user");
    }
    mounter.arg(program()).args([MOUNTER, &format!("{tier:?}")]).arg(&folder);
    let output = mounter.output().unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "free whole secret\nmounted: plain ;", "{wrong}");
    assert_eq!(fs::read_to_string(folder.join("secret/key")).unwrap(), "secret");
    assert!(!folder.join("secret/new").exists());
}

/// Mounts a hidden directory, and one of its files, in a granted directory, and runs a command there.
pub fn be_a_mounter(tier: &str, folder: &Path) -> ExitCode {
    let work = folder.join("work");
    rustix::mount::mount_bind(folder.join("secret"), work.join("whole")).unwrap();
    rustix::mount::mount_bind(folder.join("secret/deep/key"), work.join("key")).unwrap();
    let seen = fs::read_to_string(work.join("whole/key")).unwrap();
    println!("free whole {seen}");
    let script = "cat free/plain whole/key key whole/deep/key; echo x > whole/new; echo x > whole/key";
    let tier = if tier == "Landlock" { Tier::Landlock } else { Tier::Namespaces };
    let mut order = jail(tier, "/bin/sh", &["-c", script]);
    order.required = JailKind::Command.minimum();
    order.cwd.clone_from(&work);
    order.view.binds.push(bind(&work, Access::Write));
    order.view.hidden.push(folder.join("secret"));
    let report = finish(order);
    print!("mounted: {};", String::from_utf8_lossy(&report.stdout));
    ExitCode::SUCCESS
}
