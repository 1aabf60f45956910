//! Reads `/proc/self/status`. The file is opened before the jail forbids opening files.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

/// The open status file. Each read returns current values, even when no other file can be opened any more.
#[derive(Debug)]
pub(crate) struct StatusFile(File);

impl StatusFile {
    pub(crate) fn open() -> io::Result<Self> {
        File::open("/proc/self/status").map(Self)
    }

    pub(crate) fn read(&mut self) -> io::Result<Status> {
        let mut text = String::new();
        self.0.seek(SeekFrom::Start(0))?;
        (&self.0).take(MAX_BYTES).read_to_string(&mut text)?;
        Ok(Status(text))
    }
}

/// One snapshot.
#[derive(Debug)]
pub(crate) struct Status(String);

impl Status {
    pub(crate) fn threads(&self) -> io::Result<u64> {
        self.number("Threads")
    }

    /// Bytes of address space in use.
    pub(crate) fn address_space(&self) -> io::Result<u64> {
        Ok(self.number("VmSize")?.saturating_mul(1024))
    }

    pub(crate) fn no_new_privileges(&self) -> bool {
        self.number("NoNewPrivs").is_ok_and(|value| value == 1)
    }

    /// No capability is effective, permitted, inheritable or ambient.
    pub(crate) fn holds_no_capability(&self) -> bool {
        ["CapEff", "CapPrm", "CapInh", "CapAmb"].iter().all(|set| self.is_empty_set(set))
    }

    pub(crate) fn bounding_set_is_empty(&self) -> bool {
        self.is_empty_set("CapBnd")
    }

    /// None of the real, effective, saved and file-system user and group ids is root's.
    pub(crate) fn is_unprivileged(&self) -> bool {
        ["Uid", "Gid"].iter().all(|line| {
            self.line(line).is_some_and(|ids| {
                let mut ids = ids.split_ascii_whitespace().peekable();
                ids.peek().is_some() && ids.all(|id| id.parse().is_ok_and(|id: u32| id != 0))
            })
        })
    }

    pub(crate) fn has_no_groups(&self) -> bool {
        self.line("Groups").is_some_and(|groups| groups.trim().is_empty())
    }

    fn is_empty_set(&self, name: &str) -> bool {
        self.line(name).is_some_and(|set| u64::from_str_radix(set.trim(), 16).is_ok_and(|set| set == 0))
    }

    fn number(&self, name: &str) -> io::Result<u64> {
        self.line(name)
            .and_then(|line| line.split_ascii_whitespace().next()?.parse().ok())
            .ok_or_else(|| io::Error::other(format!("`/proc/self/status` has no line `{name}`")))
    }

    fn line(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }
}

const MAX_BYTES: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> Status {
        Status(text.to_owned())
    }

    #[test]
    fn missing_lines_never_count_as_protection() {
        let nothing = status("");
        assert!(!nothing.no_new_privileges());
        assert!(!nothing.holds_no_capability());
        assert!(!nothing.bounding_set_is_empty());
        assert!(!nothing.is_unprivileged());
        assert!(!nothing.has_no_groups());
        assert!(nothing.threads().is_err());
        assert!(nothing.address_space().is_err());
        assert!(!status("Uid:\t\nGid:\t\n").is_unprivileged());
    }

    #[test]
    fn one_root_id_among_four_is_privileged() {
        assert!(status("Uid:\t1\t1\t1\t1\nGid:\t7\t7\t7\t7\n").is_unprivileged());
        assert!(!status("Uid:\t1\t1\t0\t1\nGid:\t7\t7\t7\t7\n").is_unprivileged());
        assert!(!status("Uid:\t1\t1\t1\t1\nGid:\t7\t0\t7\t7\n").is_unprivileged());
    }

    #[test]
    fn one_bit_in_any_set_is_a_capability() {
        let zero = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n";
        assert!(status(&format!("{zero}CapAmb:\t0000000000000000\n")).holds_no_capability());
        assert!(!status(&format!("{zero}CapAmb:\t0000000000000400\n")).holds_no_capability());
        assert!(!status(zero).holds_no_capability(), "the ambient set was not reported");
    }

    #[test]
    fn running_kernel_writes_this_format() {
        let mut file = StatusFile::open().unwrap();
        let now = file.read().unwrap();
        assert!(now.threads().unwrap() >= 1);
        assert!(now.address_space().unwrap() > 1024 * 1024);
        assert_eq!(
            file.read().unwrap().threads().is_ok(),
            now.threads().is_ok(),
            "the file can be read again"
        );
    }
}
