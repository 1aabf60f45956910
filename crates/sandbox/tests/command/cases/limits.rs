//! Tests that limits are enforced and the host's own stay unchanged.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use toolgate_sandbox::{Access, CommandLimits, Ending, Layer, OutputCaps, Refused};

use super::{ended, shell, text};
use crate::driver::{LIMITS, Tier, bind, finish, finish_with, folder, inside, is_root, jail};

pub fn few_descriptors(tier: Tier) {
    let mut order =
        shell(tier, "exec 3</dev/null && echo 3; exec 4</dev/null && echo 4; exec 5</dev/null && echo 5");
    order.limits = CommandLimits { open_files: 5, ..LIMITS };
    let report = finish(order);
    assert!(text(&report).starts_with("3\n") && !text(&report).contains('5'), "{report:?}");
}

pub fn memory(tier: Tier) {
    let mut order = inside(tier, "take-memory");
    order.limits = CommandLimits { memory_bytes: 64 << 20, ..LIMITS };
    let report = finish(order);
    // A control group also counts kernel memory of the jail, and may be full before the process sees an error.
    if report.ending != Ending::OutOfMemory || !report.strength.has(Layer::ControlGroup) {
        ended(&report, 0);
        let megabytes: u64 = text(&report).trim().parse().unwrap();
        assert!((1..64).contains(&megabytes), "{megabytes}");
    }
    for role in ["take-memory-together", "leave-memory-to-orphans"] {
        let mut order = inside(tier, role);
        order.limits = CommandLimits { memory_bytes: 64 << 20, ..LIMITS };
        let report = finish(order);
        assert_eq!(report.ending, Ending::OutOfMemory, "{role} {report:?}");
        assert!(report.usage.peak_memory >= 64 << 20, "{role} {report:?}");
    }
}

/// Locks are counted; the limit is far above what programs need.
pub fn locks(tier: Tier) {
    let folder = folder();
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let few = |memory_bytes| {
        let mut order = inside(tier, "take-locks");
        order.argv.push(file.clone().into());
        order.view.binds.push(bind(&folder, Access::Write));
        order.limits = CommandLimits { memory_bytes, ..LIMITS };
        finish(order)
    };
    assert_eq!(text(&few(64 << 20)).trim(), "2000");
    let report = few(1 << 20);
    assert_eq!(text(&report).trim(), "1024", "{report:?}");
    let detail = "more than 1024 file locks".to_owned();
    assert_eq!(report.refused, [Refused::Syscall { name: "fcntl".into(), detail }]);
}

/// Epoll entries are counted. A regular file gets the kernel's error, which is not a denial.
pub fn waiting(tier: Tier) {
    let report = finish(inside(tier, "wait"));
    ended(&report, 0);
    assert_eq!(text(&report), "heard, file: Operation not permitted (os error 1)\n");
    assert_eq!(report.refused, []);
}

pub fn first_to_die(tier: Tier) {
    assert_eq!(text(&finish(jail(tier, "/bin/cat", &["/proc/self/oom_score_adj"]))), "1000\n");
}

pub fn fork_bomb() {
    let mut order = shell(Tier::Namespaces, "bomb() { bomb | bomb & }; bomb; sleep 1; echo survived");
    order.limits = CommandLimits { processes: 32, ..LIMITS };
    let report = finish_with(order, b"", OutputCaps { stdout: 4096, stderr: 4096 }, Duration::from_secs(5));
    assert!(matches!(report.ending, Ending::Exited(_) | Ending::TimedOut), "{report:?}");
    let mut order = inside(Tier::Namespaces, "count-forks");
    order.limits = CommandLimits { processes: 32, ..LIMITS };
    let report = finish(order);
    let count: u64 = text(&report).trim().parse().unwrap();
    // Root's processes are limited by their ids, of which the kernel reserves 300.
    let most = if is_root() { 301 } else { 32 };
    assert!((1..=most).contains(&count), "{count}");
}

pub fn host_untouched() {
    let before = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    ended(&finish(jail(Tier::Namespaces, "/usr/bin/true", &[])), 0);
    assert_eq!(fs::read_to_string("/proc/sys/kernel/pid_max").unwrap(), before);
}
