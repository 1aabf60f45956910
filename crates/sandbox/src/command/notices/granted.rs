//! Decides by its path whether a file was granted.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags},
    io::Errno,
};

use super::super::{Access, Attempt, encode::Order, seal::Ground, view};

/// The grants of a jail, by path.
#[derive(Debug)]
pub(crate) struct Granted {
    grants: Vec<(PathBuf, Access)>,
    binds: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    has_own_view: bool,
}

/// A query about a path without opening it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Question {
    IsThere,
    /// Readable, writable, or usable as working directory.
    IsUsable,
    /// For symlinks.
    LeadsWhere,
}

/// The access that a call needs to a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wish {
    For(Attempt),
    /// If the file exists, the kernel reports that and checks no permission.
    Make,
    /// If the file exists, it is only read.
    ReadOrMake,
}

impl Granted {
    pub(crate) fn of(order: &Order, ground: Ground) -> Self {
        let system = view::SYSTEM.iter().map(|path| (PathBuf::from(path), Access::Execute));
        let binds = order.binds.iter().map(|bind| (bind.at.clone(), bind.access));
        let mut grants: Vec<(PathBuf, Access)> = system.chain(binds).collect();
        // Devices are writable, except one.
        let links = view::LINKS.iter().map(|(name, _)| name);
        grants.extend(view::DEVICES.iter().chain(links).map(|name| {
            let access = if *name == view::ONLY_READ { Access::Read } else { Access::Write };
            (Path::new("/dev").join(name), access)
        }));
        grants.extend(view::SETTINGS.iter().map(|name| (Path::new("/etc").join(name), Access::Read)));
        if ground == Ground::View {
            grants.extend(view::made_up_names().map(|name| (Path::new("/etc").join(name), Access::Read)));
        }
        let binds = order.binds.iter().map(|bind| bind.at.clone()).collect();
        Self { grants, binds, hidden: order.hidden.clone(), has_own_view: ground == Ground::View }
    }

    pub(crate) fn is_in_a_bind(&self, path: &Path) -> bool {
        self.binds.iter().any(|at| path.starts_with(at))
    }

    pub(crate) fn has_own_view(&self) -> bool {
        self.has_own_view
    }

    /// Whether a query about an existing file got another answer than outside the jail.
    pub(crate) fn keeps_from(&self, path: &Path, attempt: Attempt, question: Question) -> bool {
        let is_asked = match question {
            // The mask of a hidden path exists itself.
            Question::IsThere => !self.hidden.iter().any(|hidden| hidden == path),
            Question::IsUsable => true,
            // Queries about other files reveal nothing in any case.
            Question::LeadsWhere => is_link(path),
        };
        is_asked && exists(path) && self.refuses(path, attempt)
    }

    /// The denied access, if any.
    pub(crate) fn denies(&self, path: &Path, wish: Wish) -> Option<Attempt> {
        let attempt = match wish {
            Wish::For(attempt) => attempt,
            Wish::Make if self.shows(path) => return None,
            Wish::ReadOrMake if exists(path) => Attempt::Read,
            Wish::Make | Wish::ReadOrMake => Attempt::Write,
        };
        self.refuses(path, attempt).then_some(attempt)
    }

    /// Whether the path also exists for the command. Without a view the whole host does.
    fn shows(&self, path: &Path) -> bool {
        let is_in_view = || {
            !self.hidden.iter().any(|hidden| path.starts_with(hidden))
                && (self.access(path).is_some() || self.is_above_a_grant(path))
        };
        exists(path) && (!self.has_own_view || is_in_view())
    }

    fn is_above_a_grant(&self, path: &Path) -> bool {
        self.grants.iter().any(|(at, _)| at.starts_with(path))
    }

    /// Whether an existing path was requested and not granted. A missing path was not denied: programs look for
    /// many files that do not exist.
    pub(crate) fn refuses(&self, path: &Path, attempt: Attempt) -> bool {
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return exists(path);
        }
        if is_a_view_on_itself(path) {
            return false;
        }
        if !self.has_own_view && self.is_closed_around_something_hidden(path, attempt) {
            return exists(path) || path.parent().is_some_and(exists);
        }
        // Directories above a grant belong to the view and show nothing else.
        if self.has_own_view && attempt == Attempt::Read && self.is_above_a_grant(path) {
            return false;
        }
        if self.has_own_view && path.starts_with("/tmp") && self.access(path).is_none() {
            // The host's `/tmp` is not granted. Files that the command creates in its own are not on the host.
            return attempt == Attempt::Read && path != Path::new("/tmp") && exists(path);
        }
        match (self.access(path), attempt) {
            (Some(Access::Write), Attempt::Read | Attempt::Write)
            | (Some(Access::Execute), Attempt::Read | Attempt::Execute)
            | (Some(Access::Read), Attempt::Read) => false,
            // A file to be created does not exist yet.
            (Some(_), Attempt::Write) => exists(path) || path.parent().is_some_and(exists),
            (Some(_) | None, _) => exists(path),
        }
    }

    /// With Landlock only, directories above a hidden path have no grant themselves: they can be neither listed nor
    /// changed.
    fn is_closed_around_something_hidden(&self, path: &Path, attempt: Attempt) -> bool {
        let is_above = |folder: &Path| {
            self.hidden.iter().any(|hidden| hidden != folder && hidden.starts_with(folder))
                && self.grants.iter().any(|(at, _)| folder.starts_with(at))
        };
        match attempt {
            Attempt::Read => is_above(path),
            Attempt::Write => !exists(path) && path.parent().is_some_and(is_above),
            Attempt::Execute => false,
        }
    }

    pub(crate) fn hides_something_called(&self, name: &Path) -> bool {
        self.hidden.iter().any(|hidden| hidden.file_name() == name.file_name())
    }

    fn access(&self, path: &Path) -> Option<Access> {
        let over = self.grants.iter().filter(|(at, _)| path.starts_with(at));
        over.max_by_key(|(at, _)| at.components().count()).map(|(_, access)| *access)
    }
}

/// A process may inspect itself. Programs often read system files in `/proc` and work without them, so reporting
/// those would only hide what the author must know.
fn is_a_view_on_itself(path: &Path) -> bool {
    let Ok(below) = path.strip_prefix("/proc") else {
        return path == Path::new("/") || path == Path::new("/dev");
    };
    let mut parts = below.components().map(|part| part.as_os_str().to_str().unwrap_or_default());
    match (parts.next(), parts.next()) {
        (None | Some("self" | "thread-self"), _) | (Some(_), None) => true,
        (Some(first), Some(_)) => first.parse::<u32>().is_ok(),
    }
}

/// The target of a path with symlinks; `None` if it has none or its target is missing. A file is created in a
/// directory, so only the directory's symlinks are followed then.
pub(crate) fn behind_links(path: &Path, wish: Wish) -> Option<PathBuf> {
    match wish {
        Wish::Make => Some(real(path.parent()?)?.join(path.file_name()?)),
        Wish::For(_) | Wish::ReadOrMake => real(path),
    }
}

fn real(path: &Path) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let straight = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    match straight {
        Err(Errno::LOOP) => fs::canonicalize(path).ok(),
        Ok(_) | Err(_) => None,
    }
}

fn exists(path: &Path) -> bool {
    kind(path).is_some()
}

fn is_link(path: &Path) -> bool {
    kind(path).is_some_and(FileType::is_symlink)
}

/// Neither contacts a remote server nor triggers an automount.
fn kind(path: &Path) -> Option<FileType> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let about = rustix::fs::statx(CWD, path, flags, StatxFlags::TYPE).ok()?;
    Some(FileType::from_raw_mode(about.stx_mode.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(grants: &[(&str, Access)], hidden: &[&str]) -> Granted {
        Granted {
            grants: grants.iter().map(|(at, access)| (PathBuf::from(at), *access)).collect(),
            binds: Vec::new(),
            hidden: hidden.iter().map(PathBuf::from).collect(),
            has_own_view: true,
        }
    }

    #[test]
    fn existing_path_without_grant_is_denied() {
        let usr = granted(&[("/usr", Access::Execute)], &[]);
        assert!(!usr.refuses(Path::new("/usr/bin"), Attempt::Execute));
        assert!(usr.refuses(Path::new("/usr/bin/new"), Attempt::Write));
        assert!(usr.refuses(Path::new("/etc"), Attempt::Read));
        let below = granted(&[("/etc/ssl/certs", Access::Read)], &[]);
        assert!(!below.refuses(Path::new("/etc"), Attempt::Read));
        assert!(below.refuses(Path::new("/etc"), Attempt::Write));
        assert!(!usr.refuses(Path::new("/etc/no such file"), Attempt::Read));
        assert!(!usr.refuses(Path::new("/proc/self/status"), Attempt::Read));
        assert!(!usr.refuses(Path::new("/proc/meminfo"), Attempt::Read));
        assert!(usr.refuses(Path::new("/proc/sys/kernel"), Attempt::Read));
    }

    #[test]
    fn query_is_denied_if_the_answer_differs() {
        let usr = granted(&[("/usr", Access::Execute)], &["/usr/lib"]);
        let keeps = |path: &str, attempt, question| usr.keeps_from(Path::new(path), attempt, question);
        assert!(keeps("/etc", Attempt::Read, Question::IsThere));
        assert!(keeps("/etc", Attempt::Read, Question::IsUsable));
        assert!(!keeps("/etc", Attempt::Read, Question::LeadsWhere), "it is not a symlink");
        assert!(!keeps("/etc/no such file", Attempt::Read, Question::IsUsable));
        assert!(!keeps("/usr/bin", Attempt::Read, Question::IsUsable));
        assert!(keeps("/usr/bin", Attempt::Write, Question::IsUsable));
        assert!(!keeps("/usr/no such file", Attempt::Write, Question::IsUsable), "a query creates nothing");
        assert!(!keeps("/usr/lib", Attempt::Read, Question::IsThere), "its mask exists");
        assert!(keeps("/usr/lib", Attempt::Read, Question::IsUsable));
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(usr.keeps_from(&link, Attempt::Read, Question::LeadsWhere));
    }

    #[test]
    fn without_a_view_directories_above_hidden_paths_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        fs::create_dir_all(top.join("open/below")).unwrap();
        fs::create_dir_all(top.join("keys")).unwrap();
        let hidden = top.join("keys/key");
        let with = |has_own_view| Granted {
            grants: vec![(top.to_owned(), Access::Write)],
            binds: vec![top.to_owned()],
            hidden: vec![hidden.clone()],
            has_own_view,
        };
        let rows = [
            ("", Attempt::Read, true),
            ("keys", Attempt::Read, true),
            ("keys/new", Attempt::Write, true),
            ("new", Attempt::Write, true),
            ("open", Attempt::Read, false),
            ("open", Attempt::Write, false),
            ("open/below", Attempt::Read, false),
            ("open/new", Attempt::Write, false),
        ];
        for (name, attempt, is_refused) in rows {
            assert_eq!(with(false).refuses(&top.join(name), attempt), is_refused, "{name} {attempt:?}");
            assert!(!with(true).refuses(&top.join(name), attempt), "{name} {attempt:?}");
        }
    }

    /// The kernel first reports that the file exists.
    #[test]
    fn creating_an_existing_file_is_not_a_denial() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        fs::create_dir_all(top.join("granted/keys")).unwrap();
        let with = |has_own_view| Granted {
            grants: vec![(top.join("granted"), Access::Read), ("/usr".into(), Access::Execute)],
            binds: vec![top.join("granted")],
            hidden: vec![top.join("granted/keys")],
            has_own_view,
        };
        let rows = [
            ("", Wish::Make, None, None),
            ("granted", Wish::Make, None, None),
            ("granted/new", Wish::Make, Some(Attempt::Write), Some(Attempt::Write)),
            ("granted/keys", Wish::Make, Some(Attempt::Write), None),
            ("granted", Wish::ReadOrMake, None, Some(Attempt::Read)),
            ("granted/new", Wish::ReadOrMake, Some(Attempt::Write), Some(Attempt::Write)),
            ("granted", Wish::For(Attempt::Write), Some(Attempt::Write), Some(Attempt::Write)),
            ("/etc", Wish::Make, Some(Attempt::Write), None),
            ("/etc/passwd", Wish::ReadOrMake, Some(Attempt::Read), Some(Attempt::Read)),
            ("/usr/bin", Wish::Make, None, None),
            ("/usr/bin/new", Wish::Make, Some(Attempt::Write), Some(Attempt::Write)),
            ("/usr/bin/env", Wish::ReadOrMake, None, None),
        ];
        for (name, wish, in_view, without) in rows {
            let path = top.join(name);
            assert_eq!(with(true).denies(&path, wish), in_view, "{name} {wish:?}");
            assert_eq!(with(false).denies(&path, wish), without, "{name} {wish:?}");
        }
    }

    #[test]
    fn only_symlinks_lead_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(top.join("real")).unwrap();
        fs::write(top.join("real/file"), "").unwrap();
        std::os::unix::fs::symlink("real", top.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", top.join("broken")).unwrap();
        let behind = |path: &str, wish| behind_links(&top.join(path), wish);
        let read = Wish::For(Attempt::Read);
        assert_eq!(behind("link/file", read), Some(top.join("real/file")));
        assert_eq!(behind("link", read), Some(top.join("real")));
        for plain in ["real", "real/file", "absent", "broken"] {
            assert_eq!(behind(plain, read), None, "{plain}");
        }
        assert_eq!(behind("link/new", Wish::Make), Some(top.join("real/new")));
        assert_eq!(behind("link", Wish::Make), None, "the symlink itself already exists");
    }

    #[test]
    fn nearest_grant_applies_and_hidden_takes_precedence() {
        let nested = granted(&[("/usr", Access::Write), ("/usr/bin", Access::Read)], &["/usr/lib"]);
        assert!(!nested.refuses(Path::new("/usr/new"), Attempt::Write));
        assert!(nested.refuses(Path::new("/usr/bin/new"), Attempt::Write));
        assert!(nested.refuses(Path::new("/usr/lib"), Attempt::Read));
    }
}
