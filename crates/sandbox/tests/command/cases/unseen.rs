//! Tests memory limits where the host hides processes from ordinary users (`hidepid`, `ProtectProc=` of systemd).

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use rustix::process::DumpableBehavior;
use toolgate_sandbox::{Access, CommandJail, CommandLimits, Ending, SpawnError};

use crate::{
    attacks::call::{Fork, fork, leave},
    driver::{
        CAPS, HIDER, INSIDE, LIMITS, ORDINARY_USER, PATIENCE, PLACED, Tier, bind, folder, inside, is_root,
        jail, on_runtime, program, spawn,
    },
};

pub fn memory(tier: Tier) {
    if !is_root() {
        println!("skipped: only root can hide processes");
        return;
    }
    let folder = folder();
    fs::copy(program(), folder.join("closed")).unwrap();
    fs::set_permissions(folder.join("closed"), fs::Permissions::from_mode(0o711)).unwrap();
    let hidden = "mount -t proc -o hidepid=invisible proc /proc";
    // As in a container: the kernel then denies ordinary users a new `/proc`.
    let masked = "mount -t proc proc /proc && mount -t tmpfs none /proc/irq";
    let both = "mount -t proc -o hidepid=invisible proc /proc && mount -t tmpfs none /proc/irq";
    let rows = match tier {
        Tier::Namespaces => [
            (hidden, "Enforced OutOfMemory OutOfMemory OutOfMemory"),
            (masked, "Enforced OutOfMemory OutOfMemory OutOfMemory"),
            (both, "Missing memory-limit memory-limit memory-limit"),
        ],
        // A program that this user may execute but not read is hidden from its supervisor.
        Tier::Landlock => [
            (hidden, "Enforced OutOfMemory OutOfMemory JailFailed"),
            (masked, "Enforced OutOfMemory OutOfMemory OutOfMemory"),
            (both, "Missing OutOfMemory OutOfMemory JailFailed"),
        ],
    };
    for (mount, expected) in rows {
        let user = ORDINARY_USER.to_string();
        let script = format!("{mount} && exec setpriv --clear-groups \"$@\"");
        let mut hider = Command::new("unshare");
        hider.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]).env(PLACED, "1");
        hider.args(["--reuid", &user, "--regid", &user]).arg(program()).args([HIDER, &format!("{tier:?}")]);
        let output = hider.arg(&folder).output().unwrap();
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{mount}: {wrong}");
    }
}

/// The ordinary user from whom other processes are hidden.
pub fn be_a_hider(tier: &str, folder: &Path) -> ExitCode {
    let host = toolgate_sandbox::probe();
    let row = host.rows.iter().find(|row| row.name == "memory limit").unwrap();
    let tier = if tier == "Landlock" { Tier::Landlock } else { Tier::Namespaces };
    let mut closed = jail(tier, folder.join("closed"), &[INSIDE, "take-memory-unseen"]);
    closed.view.binds.push(bind(folder, Access::Execute));
    let ends = [inside(tier, "take-memory-seen"), inside(tier, "take-memory-unseen"), closed].map(end_of);
    print!("{:?} {}", row.state, ends.join(" "));
    ExitCode::SUCCESS
}

fn end_of(mut order: CommandJail) -> String {
    order.limits = CommandLimits { memory_bytes: 64 << 20, ..LIMITS };
    let ending = on_runtime(async {
        let running = spawn(order).await?;
        Ok(running.finish(Vec::new(), CAPS, PATIENCE).await.ending)
    });
    match ending {
        Ok(Ending::JailFailed(_)) => "JailFailed".to_owned(),
        Ok(other) => format!("{other:?}"),
        Err(SpawnError::TooWeak { missing }) => missing.join(", "),
        Err(other) => other.to_string(),
    }
}

/// Each process stays below its limit; together they exceed it.
pub fn take(dumpable: DumpableBehavior) {
    for _ in 0..6 {
        if let Ok(Fork::Child) = fork() {
            let _ = rustix::process::set_dumpable_behavior(dumpable);
            hold();
        }
    }
    std::thread::sleep(Duration::from_secs(3));
}

pub fn hold() -> ! {
    let held = vec![1_u8; 24 << 20];
    std::thread::sleep(Duration::from_secs(20));
    std::hint::black_box(held);
    leave()
}
