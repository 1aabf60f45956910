//! Would a bind show files that are doors to the kernel or to other processes?

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// Where such a door lies in, or around, `path`, by the kernel's list of mounts.
pub(crate) fn door_in(mounts: &str, path: &Path) -> Option<PathBuf> {
    let mounts: Vec<(PathBuf, &str)> = mounts.lines().filter_map(mount).collect();
    let around = mounts.iter().filter(|(point, _)| path.starts_with(point));
    // Of several on one place the last lies on top.
    let around = around.max_by_key(|(point, _)| point.components().count());
    let within = mounts.iter().filter(|(point, _)| point.starts_with(path));
    within.chain(around).find(|(_, kind)| DOORS.contains(kind)).map(|(point, _)| point.clone())
}

/// Place and kind of one line of `mountinfo`.
fn mount(line: &str) -> Option<(PathBuf, &str)> {
    let (head, tail) = line.split_once(" - ")?;
    let point = head.split(' ').nth(4)?;
    Some((unescape(point), tail.split(' ').next()?))
}

/// Spaces and the like are written as a backslash and three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut plain = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                plain.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            _ => {
                plain.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(plain).into()
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
    fn doors_are_found_around_and_within() {
        let door = |path: &str| door_in(MOUNTS, Path::new(path));
        assert_eq!(door("/home/me"), None);
        assert_eq!(door("/srv/other"), None);
        assert_eq!(door("/srv/a rootling"), None);
        assert_eq!(door("/proc/sys/kernel"), Some("/proc".into()));
        assert_eq!(door("/srv"), Some("/srv/a root/proc".into()));
        assert_eq!(door("/srv/a root/proc/1"), Some("/srv/a root/proc".into()));
        assert_eq!(door("/"), Some("/proc".into()));
    }

    #[test]
    fn the_running_kernel_writes_this_form() {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(door_in(&mounts, Path::new("/proc/self")).is_some());
        assert_eq!(mounts.lines().filter_map(mount).count(), mounts.lines().count());
    }
}
