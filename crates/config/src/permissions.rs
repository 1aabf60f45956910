//! Finds configuration files that other users of this machine can change. Other users must not decide what a tool may do.

use std::{
    fmt, fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::Config;

/// A file or directory that other users can change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Writable {
    pub path: PathBuf,
    by: Others,
    is_directory: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Others {
    Everyone,
    Group(u32),
}

impl Writable {
    /// Checks one path. `None` also if it does not exist.
    ///
    /// Accepts files that belong to root's group or to this process' group: with umask 002 and a group per user they are safe.
    pub fn check(path: &Path) -> Option<Self> {
        let own_group = fs::metadata("/proc/self").map_or(0, |own| own.gid());
        let metadata = fs::metadata(path).ok()?;
        let by = match (metadata.mode() & 0o022, metadata.gid()) {
            (mode, _) if mode & 0o002 != 0 => Others::Everyone,
            (0, _) | (_, 0) => return None,
            (_, group) if group == own_group => return None,
            (_, group) => Others::Group(group),
        };
        // In a sticky directory such as `/tmp`, users can replace only their files.
        let is_sticky = metadata.mode() & 0o1000 != 0;
        if metadata.is_dir() && is_sticky {
            return None;
        }
        Some(Self { path: path.to_owned(), by, is_directory: metadata.is_dir() })
    }

    /// True for a file that every user can change. Directories are only reported: container volumes are often writable
    /// for everyone but mounted read-only.
    pub fn is_refused(&self) -> bool {
        self.by == Others::Everyone && !self.is_directory
    }

    pub fn problem(&self) -> String {
        let path = self.path.display();
        match self.by {
            Others::Everyone => format!("every user of this machine can change `{path}`"),
            Others::Group(group) => format!("the members of group {group} can change `{path}`"),
        }
    }

    pub fn remedy(&self) -> String {
        let who = if self.by == Others::Everyone { 'o' } else { 'g' };
        format!("run `chmod {who}-w {}`", self.path.display())
    }
}

impl fmt::Display for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem(), self.remedy())
    }
}

impl Config {
    /// Files of this configuration, including itself, that other users can change. Documents inside a directory are
    /// checked when they are read.
    pub fn writable_by_others(&self) -> Vec<Writable> {
        let policy = &self.policy;
        let files = [&self.file, &policy.baseline, &policy.profiles, &policy.overrides].into_iter().flatten();
        let directory = self.file.as_deref().and_then(Path::parent);
        let all = directory.into_iter().chain(files.map(PathBuf::as_path));
        let all = all.chain(policy.cedar.iter().chain(&self.tools).map(PathBuf::as_path));
        all.chain([self.state.as_path()]).filter_map(Writable::check).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::Overrides;

    fn with_mode(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolgate.yaml");
        fs::write(&file, "version: 1\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        (folder, file)
    }

    #[test]
    fn file_that_everyone_can_change_is_refused() {
        let (_folder, file) = with_mode(0o646);
        let found = Writable::check(&file).unwrap();
        assert!(found.is_refused());
        assert_eq!(found.remedy(), format!("run `chmod o-w {}`", file.display()));
        let errors = Config::load(&file, &|_| None, &Overrides::default()).unwrap_err();
        assert!(errors[0].to_string().contains("every user of this machine can change"), "{errors:?}");
    }

    /// A new file belongs to this process' group.
    #[test]
    fn file_of_the_own_group_is_accepted() {
        for mode in [0o600, 0o644, 0o664] {
            let (_folder, file) = with_mode(mode);
            assert_eq!(Writable::check(&file), None, "{mode:o}");
            assert!(Config::load(&file, &|_| None, &Overrides::default()).is_ok());
        }
    }

    #[test]
    fn directory_is_reported_unless_it_is_sticky() {
        let folder = tempfile::tempdir().unwrap();
        for (mode, is_reported) in [(0o755, false), (0o777, true), (0o1777, false)] {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            let found = Writable::check(folder.path());
            assert_eq!(found.is_some(), is_reported, "{mode:o}");
            assert!(!found.is_some_and(|found| found.is_refused()));
        }
        assert_eq!(Writable::check(&folder.path().join("nothing")), None);
    }

    #[test]
    fn foreign_group_is_reported() {
        let (_folder, file) = with_mode(0o664);
        let Ok(()) = std::os::unix::fs::chown(&file, None, Some(12_345)) else { return };
        let found = Writable::check(&file).unwrap();
        assert!(!found.is_refused());
        assert_eq!(
            found.to_string(),
            format!("the members of group 12345 can change `{0}`; run `chmod g-w {0}`", file.display())
        );
    }
}
