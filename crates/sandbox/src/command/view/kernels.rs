//! Detects binds that would show kernel file systems.

use std::path::{Path, PathBuf};

use crate::mount_table::{Mount, MountTable};

/// The mount point of a kernel file system inside `path`, or of the one that contains it.
pub(crate) fn door_in(mounts: &MountTable, path: &Path) -> Option<PathBuf> {
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    // The last of several mounts at one point is on top.
    let around = around.max_by_key(|mount| mount.point.components().count());
    let within = mounts.iter().filter(|mount| mount.point.starts_with(path));
    let is_door = |mount: &&Mount| DOORS.contains(&mount.kind.as_str());
    within.chain(around).find(is_door).map(|mount| mount.point.clone())
}

const DOORS: [&str; 17] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "mqueue",
    "nfsd",
    "proc",
    "pstore",
    "sysfs",
    "tracefs",
];

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        23 22 0:20 / /proc rw - proc proc rw\n\
        24 22 0:21 / /srv/a\\040root/proc rw shared:1 - proc proc rw\n\
        25 22 0:22 / /home rw - btrfs /dev/vdb rw\n";

    #[test]
    fn kernel_file_systems_are_found_around_and_within() {
        let door = |path: &str| door_in(&MountTable::parse(MOUNTS), Path::new(path));
        assert_eq!(door("/home/me"), None);
        assert_eq!(door("/srv/other"), None);
        assert_eq!(door("/srv/a rootling"), None);
        assert_eq!(door("/proc/sys/kernel"), Some("/proc".into()));
        assert_eq!(door("/srv"), Some("/srv/a root/proc".into()));
        assert_eq!(door("/srv/a root/proc/1"), Some("/srv/a root/proc".into()));
        assert_eq!(door("/"), Some("/proc".into()));
    }
}
