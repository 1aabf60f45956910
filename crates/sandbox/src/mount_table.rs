//! Parsed `/proc/self/mountinfo`: finds the other paths under which a bind mount shows a file. Neither the file's
//! type nor its link count reveals such paths.
//!
//! Each line of the kernel's list names the part of a file system that the mount shows. Two file systems that show
//! the same files by themselves are not recognised: the layers of an overlay, or a server mounted under two names.

use std::{
    ffi::OsString,
    fs, io,
    os::fd::{AsFd, BorrowedFd},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use rustix::event::PollFlags;

/// Detects later changes of this process's mount namespace: mounts, unmounts and changed mount attributes.
#[derive(Debug)]
pub(crate) struct MountWatch(fs::File);

impl MountWatch {
    pub(crate) fn begin() -> io::Result<Self> {
        fs::File::open("/proc/self/mountinfo").map(Self)
    }

    /// Poll it for [`Self::EVENTS`]. The kernel reports all changes since the last poll at once.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Not readability, because the file is always readable.
    pub(crate) const EVENTS: PollFlags = PollFlags::PRI;
}

/// The mounts at one moment.
#[derive(Debug)]
pub struct MountTable {
    mounts: Vec<Mount>,
}

#[derive(Debug)]
pub(crate) struct Mount {
    number: String,
    /// The mount that this one is mounted on.
    parent: String,
    device: String,
    /// The part of the file system that is mounted.
    root: PathBuf,
    pub(crate) point: PathBuf,
    pub(crate) kind: String,
}

impl MountTable {
    /// The mounts that this process sees.
    pub fn read() -> io::Result<Self> {
        let text = fs::read("/proc/self/mountinfo")?;
        Ok(Self::parse(&String::from_utf8_lossy(&text)))
    }

    /// Parses the kernel's format and skips invalid lines.
    pub fn parse(text: &str) -> Self {
        Self { mounts: text.lines().filter_map(Mount::parse).collect() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// Whether any file is visible under two paths.
    pub fn shows_anything_twice(&self) -> bool {
        let is_twin = |one: &Mount, other: &Mount| {
            one.device == other.device
                && (one.root.starts_with(&other.root) || other.root.starts_with(&one.root))
        };
        let mut mounts = self.mounts.iter();
        while let Some(one) = mounts.next() {
            if mounts.clone().any(|other| is_twin(one, other)) {
                return true;
            }
        }
        false
    }

    /// Whether both paths, one below the other, are in the same mount. Both must be free of symlinks.
    pub fn lie_in_one_mount(&self, one: &Path, other: &Path) -> bool {
        match (self.around(one), self.around(other)) {
            (Some(one), Some(other)) => std::ptr::eq(one, other),
            _ => false,
        }
    }

    /// Every other path of the file at `path`, which must be free of symlinks.
    pub fn other_names(&self, path: &Path) -> Vec<PathBuf> {
        let Some((device, inside)) = self.locate(path) else { return Vec::new() };
        let names = self.shown(device, |mount| inside.strip_prefix(&mount.root).ok());
        names.into_iter().filter(|name| name != path).collect()
    }

    /// Every path outside `path` that shows the directory or a part of it. `path` must be free of symlinks.
    pub fn seen_outside(&self, path: &Path) -> Vec<PathBuf> {
        let within = self.mounts.iter().filter(|mount| mount.point.starts_with(path));
        let within = within.map(|mount| (mount.device.as_str(), mount.root.clone()));
        let places = self.locate(path).into_iter().chain(within);
        let mut names: Vec<PathBuf> = places
            .flat_map(|(device, inside)| {
                self.shown(device, |mount| {
                    let is_part = mount.root.starts_with(&inside);
                    inside.strip_prefix(&mount.root).ok().or(is_part.then_some(Path::new("")))
                })
            })
            .filter(|name| !name.starts_with(path))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// The device of the file system that contains `path`, and the path within it.
    fn locate(&self, path: &Path) -> Option<(&str, PathBuf)> {
        let mount = self.around(path)?;
        Some((&mount.device, join(&mount.root, path.strip_prefix(&mount.point).ok()?)))
    }

    /// The mount that contains a path, found like the kernel does: from the root mount down.
    fn around(&self, path: &Path) -> Option<&Mount> {
        let is_known = |number: &str| self.mounts.iter().any(|mount| mount.number == number);
        let tops =
            self.mounts.iter().filter(|mount| mount.parent == mount.number || !is_known(&mount.parent));
        let mut here = nearest(tops, path)?;
        for _ in &self.mounts {
            let on_it = |mount: &&Mount| mount.parent == here.number && mount.number != here.number;
            match nearest(self.mounts.iter().filter(on_it), path) {
                Some(next) => here = next,
                None => break,
            }
        }
        Some(here)
    }

    /// Paths at which the mounts of a device show the part that `below` selects, except where another mount covers
    /// it.
    fn shown<'a>(&self, device: &str, below: impl Fn(&Mount) -> Option<&'a Path>) -> Vec<PathBuf> {
        let of_device = self.mounts.iter().filter(|mount| mount.device == device);
        of_device
            .filter_map(|mount| Some((mount, join(&mount.point, below(mount)?))))
            .filter(|(mount, name)| self.around(name).is_some_and(|top| std::ptr::eq(top, *mount)))
            .map(|(_, name)| name)
            .collect()
    }
}

impl Mount {
    /// One line of `mountinfo`.
    fn parse(line: &str) -> Option<Self> {
        let (head, tail) = line.split_once(" - ")?;
        let mut words = head.split(' ');
        let mut word = || words.next().map(str::to_owned);
        let (number, parent, device) = (word()?, word()?, word()?);
        let (root, point) = (unescape(&word()?), unescape(&word()?));
        let kind = tail.split(' ').next()?.to_owned();
        Some(Self { number, parent, device, root, point, kind })
    }
}

/// The outermost mount that contains a path.
fn nearest<'a>(mounts: impl Iterator<Item = &'a Mount>, path: &Path) -> Option<&'a Mount> {
    let around = mounts.filter(|mount| path.starts_with(&mount.point));
    around.min_by_key(|mount| mount.point.components().count())
}

/// Adds no trailing slash if `below` is empty.
fn join(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

/// The kernel writes spaces and similar characters as a backslash and three octal digits.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The root comes after the mounts on it, as on a system started from an initramfs.
    const MOUNTS: &str = "\
        23 22 0:20 / /proc rw - proc proc rw\n\
        22 1 254:0 / / rw - ext4 /dev/vda rw\n\
        24 22 254:0 /secret /work/a\\040mount rw shared:1 - ext4 /dev/vda rw\n\
        25 22 254:0 /secret/deep/key /work/key rw - ext4 /dev/vda rw\n\
        26 22 0:30 /data /secret/disk rw - btrfs /dev/vdb rw\n\
        27 22 0:30 / /mnt rw - btrfs /dev/vdb rw\n\
        28 22 254:0 /secret /covered rw - ext4 /dev/vda rw\n\
        29 28 0:31 / /covered rw - tmpfs none rw\n\
        30 22 254:0 /secret /over/inner rw - ext4 /dev/vda rw\n\
        31 22 0:32 / /over rw - tmpfs none rw\n";

    #[track_caller]
    fn check(found: &[PathBuf], expected: &[&str]) {
        assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
    }

    #[test]
    fn every_alias_of_a_file_is_found() {
        let table = MountTable::parse(MOUNTS);
        check(&table.other_names(Path::new("/secret/x")), &["/work/a mount/x"]);
        check(&table.other_names(Path::new("/work/a mount/x")), &["/secret/x"]);
        check(&table.other_names(Path::new("/work/key")), &["/secret/deep/key", "/work/a mount/deep/key"]);
        check(&table.other_names(Path::new("/secret/disk/x")), &["/mnt/data/x"]);
        check(&table.other_names(Path::new("/secretly")), &[]);
        check(&table.other_names(Path::new("/covered/x")), &[]);
    }

    #[test]
    fn only_mounts_of_the_same_files_count_as_duplicates() {
        assert!(MountTable::parse(MOUNTS).shows_anything_twice());
        let apart =
            "1 0 254:0 /a / rw - ext4 x rw\n2 1 254:0 /b /b rw - ext4 x rw\n3 1 0:5 /a /c rw - tmpfs x rw";
        assert!(!MountTable::parse(apart).shows_anything_twice());
    }

    #[test]
    fn mounts_that_show_part_of_a_directory_are_found() {
        let table = MountTable::parse(MOUNTS);
        check(&table.seen_outside(Path::new("/secret")), &["/mnt/data", "/work/a mount", "/work/key"]);
        check(&table.seen_outside(Path::new("/secret/deep")), &["/work/a mount/deep", "/work/key"]);
        check(&table.seen_outside(Path::new("/work")), &["/secret", "/secret/deep/key"]);
        check(&table.seen_outside(Path::new("/home")), &[]);
    }

    #[test]
    fn running_kernel_writes_this_format() {
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let table = MountTable::read().unwrap();
        assert_eq!(table.mounts.len(), text.lines().count());
        assert!(table.around(Path::new("/proc/self")).is_some_and(|mount| mount.kind == "proc"));
    }
}
