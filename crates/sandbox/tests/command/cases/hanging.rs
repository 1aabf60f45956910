//! Tests commands that access a file system whose server never responds.

use std::{
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::Path,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use rustix::mount::MountFlags;
use toolgate_sandbox::CommandLimits;

use super::{
    ends::{mark, processes_with},
    shell, unseen,
};
use crate::{
    attacks::call::{Fork, fork, leave},
    driver::{CAPS, HANGER, LIMITS, PLACED, Tier, finish_with, folder, inside, is_root, program},
};

pub fn limits(tier: Tier) {
    if !is_root() || !Path::new("/dev/fuse").exists() {
        println!("skipped: it takes root and `/dev/fuse` to mount what hangs");
        return;
    }
    let folder = folder();
    fs::create_dir(folder.join("hanging")).unwrap();
    // In its own mount namespace, so no other process meets it.
    let mut hanger = Command::new("unshare");
    hanger.args(["--mount", "--propagation", "private"]).env(PLACED, "1");
    hanger.arg(program()).args([HANGER, &format!("{tier:?}")]).arg(folder.join("hanging"));
    let output = hanger.output().unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "OutOfMemory; TimedOut, 0 left", "{wrong}");
}

/// Mounts a hanging file system and runs two commands that access it.
pub fn be_a_hanger(tier: &str, folder: &Path) -> ExitCode {
    let tier = if tier == "Landlock" { Tier::Landlock } else { Tier::Namespaces };
    let server = hang(folder).unwrap();
    let path = folder.join("file");

    let mut order = inside(tier, "hang-and-take-memory");
    order.argv.push(path.clone().into());
    order.limits = CommandLimits { memory_bytes: 64 << 20, ..LIMITS };
    print!("{:?}; ", finish_with(order, b"", CAPS, DEADLINE).ending);

    let mark = mark();
    let script = format!("cat {} & sleep {mark} & sleep {mark}", path.display());
    let started = Instant::now();
    let report = finish_with(shell(tier, &script), b"", CAPS, DEADLINE);
    assert!(started.elapsed() < DEADLINE + A_MOMENT, "it took {:?}", started.elapsed());
    let ended = Instant::now();
    while processes_with(&mark) > 0 && ended.elapsed() < A_MOMENT {
        std::thread::sleep(Duration::from_millis(5));
    }
    print!("{:?}, {} left", report.ending, processes_with(&mark));
    // Unblocks processes that still wait for it.
    drop(server);
    ExitCode::SUCCESS
}

/// Every access blocks until the descriptor is closed.
fn hang(folder: &Path) -> io::Result<File> {
    let server = File::options().read(true).write(true).open("/dev/fuse")?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", server.as_raw_fd());
    let options = std::ffi::CString::new(options).unwrap();
    rustix::mount::mount("hanging", folder, "fuse", MountFlags::NOSUID | MountFlags::NODEV, &*options)?;
    Ok(server)
}

/// The jailed side: one process waits for the path, the others allocate memory without any notification.
pub fn take(path: &Path) {
    if let Ok(Fork::Child) = fork() {
        let _ = File::open(path);
        leave();
    }
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..6 {
        if let Ok(Fork::Child) = fork() {
            unseen::hold();
        }
    }
    std::thread::sleep(Duration::from_secs(20));
}

const DEADLINE: Duration = Duration::from_secs(4);
/// Shorter than a gateway waits for a supervisor that does not report.
const A_MOMENT: Duration = Duration::from_secs(5);
