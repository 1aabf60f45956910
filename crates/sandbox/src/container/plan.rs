//! Does what is asked of a container make sense, and what exactly is it, with every path resolved and every cover in place?

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Component, Path, PathBuf},
    time::Duration,
};

use rustix::fs::{Mode, OFlags};

use super::{
    ContainerJail, ContainerLimits, ContainerUser, RuntimeKind, doors,
    latch::{self, Latch},
    masks::{self, Hidden, Id, Masks},
    network::{NAME_FILE_PLACE, NameFile},
};
use crate::{Access, Bind, Network, Source, SpawnError};

/// A checked container: text without anything that a runtime could read otherwise than it is meant.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) image: String,
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: String,
    pub(super) user: ContainerUser,
    pub(super) tmp_bytes: u64,
    pub(super) limits: ContainerLimits,
    pub(super) network: Network,
    pub(super) deadline: Duration,
    /// Outer ones first.
    pub(super) mounts: Vec<Mount>,
    /// Covers must exist as long as the container.
    _masks: Option<Masks>,
    /// And so must the file that says whom to ask for names.
    _names: Option<NameFile>,
    /// And what holds the command back until it was looked at, where the runtime does not.
    latch: Option<Latch>,
}

#[derive(Debug)]
pub(super) struct Mount {
    pub(super) source: String,
    pub(super) target: String,
    pub(super) access: Access,
    pub(super) id: Id,
    /// As long as it is open, no other file gets its number.
    _open: Option<OwnedFd>,
}

impl Plan {
    pub(super) fn check(jail: ContainerJail, runtime: RuntimeKind) -> Result<Self, SpawnError> {
        if jail.network == (Network::Proxied { http_port: 0 }) {
            return invalid("the proxy's port is 0; name the one that the command is told");
        }
        if jail.user.uid == 0 || jail.user.gid == 0 {
            return invalid("a container does not run as root; name another user and group");
        }
        check_limits(&jail.limits, jail.view.tmp_bytes)?;
        let argv: Vec<String> = jail.argv.iter().map(|word| argument(word)).collect::<Result<_, _>>()?;
        if argv.first().is_none_or(String::is_empty) {
            return invalid("there is no program to run");
        }
        let shown: Vec<Shown> = jail.view.binds.into_iter().map(Shown::open).collect::<Result<_, _>>()?;
        check_places(&shown)?;
        let names = match jail.network {
            Network::None => None,
            Network::Proxied { .. } => Some(names(&shown)?),
        };
        let (names, name_file) = names.unzip();
        let (hook, latch) = match runtime {
            RuntimeKind::Podman => None,
            RuntimeKind::Docker => Some(hook(&shown)?),
        }
        .unzip();
        let doors = doors(&shown, jail.deadline)?;
        let ours = names.into_iter().chain(hook).collect();
        let (mounts, masks) = mounts(shown, ours, &jail.view.hidden, &jail.view.hidden_large, doors)?;
        Ok(Self {
            image: jail.image.as_str().to_owned(),
            argv,
            env: environment(&jail.env)?,
            cwd: place(&jail.cwd)?,
            user: jail.user,
            tmp_bytes: jail.view.tmp_bytes,
            limits: jail.limits,
            network: jail.network,
            deadline: jail.deadline,
            mounts,
            _masks: masks,
            _names: name_file,
            latch,
        })
    }

    /// The words that the container is made with.
    pub(super) fn command(&self) -> Vec<String> {
        let before = if self.has_latch() { latch::words(&self.mounts) } else { Vec::new() };
        before.into_iter().chain(self.argv.iter().cloned()).collect()
    }

    pub(super) fn has_latch(&self) -> bool {
        self.latch.is_some()
    }
}

impl Mount {
    /// Whether it lies in something that another one shows.
    pub(super) fn is_in_one_of(&self, mounts: &[Self]) -> bool {
        let target = Path::new(&self.target);
        mounts.iter().any(|other| other.target != self.target && target.starts_with(&other.target))
    }
}

fn invalid<T>(why: impl Into<String>) -> Result<T, SpawnError> {
    Err(SpawnError::Invalid(why.into()))
}

/// To a runtime zero means without limit.
fn check_limits(limits: &ContainerLimits, tmp_bytes: u64) -> Result<(), SpawnError> {
    let rows = [
        ("memory", limits.memory_bytes, 8 << 20),
        ("processor time", limits.millicpus.into(), 10),
        ("the number of processes", limits.processes.into(), 1),
        ("the number of open files", limits.open_files.into(), 16),
        ("the size of files", limits.file_bytes, 1),
        ("the size of `/tmp`", tmp_bytes, 4096),
    ];
    for (name, value, least) in rows {
        if value < least || i64::try_from(value).is_err() {
            return invalid(format!(
                "the limit of {name} is {value}; give at least {least} and less than 2^63"
            ));
        }
    }
    Ok(())
}

fn argument(word: &OsStr) -> Result<String, SpawnError> {
    match word.to_str() {
        Some(text) if !text.contains('\0') => Ok(text.to_owned()),
        _ => invalid(format!("`{}` cannot be an argument in a container, which takes text only", told(word))),
    }
}

/// They travel as lines of a file that the runtime reads: never as arguments, which everybody on the host can see, and never
/// as the environment of the runtime's own program, which some names would steer.
fn environment(env: &[(impl AsRef<OsStr>, impl AsRef<OsStr>)]) -> Result<Vec<(String, String)>, SpawnError> {
    let mut seen = BTreeSet::new();
    let mut checked = Vec::new();
    for (name, value) in env {
        let (name, value) = (argument(name.as_ref())?, argument(value.as_ref())?);
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if !is_name {
            return invalid(format!("`{}` is not the name of a variable", name.escape_debug()));
        }
        // Never the value in a message: it may be a secret.
        if value.contains(['\n', '\r']) || value.len() > LONGEST_VALUE {
            return invalid(format!(
                "the value of `{name}` has a line break or more than {LONGEST_VALUE} bytes; give it in a file or as input"
            ));
        }
        if !seen.insert(name.clone()) {
            return invalid(format!("the variable `{name}` is given twice"));
        }
        checked.push((name, value));
    }
    Ok(checked)
}

/// A place in the container: absolute, nothing to be resolved, no character that ends a line.
fn place(path: &Path) -> Result<String, SpawnError> {
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    match path.to_str() {
        Some(text)
            if path.is_absolute() && path.components().all(plain) && !text.contains(char::is_control) =>
        {
            Ok(path.components().collect::<PathBuf>().to_string_lossy().into_owned())
        }
        _ => invalid(format!("`{}` is not an absolute path of plain text in the container", told(path))),
    }
}

/// A bind whose source has been opened.
struct Shown {
    real: PathBuf,
    at: PathBuf,
    access: Access,
    id: Id,
    is_folder: bool,
    open: OwnedFd,
}

impl Shown {
    fn open(bind: Bind) -> Result<Self, SpawnError> {
        let at = PathBuf::from(place(&bind.at)?);
        let open = match bind.source {
            Source::Opened(open) => open,
            Source::Path(path) => rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| SpawnError::Invalid(format!("bind `{}`: {error}", told(&path))))?,
        };
        let failed = |error: io::Error| SpawnError::Failed(format!("bind at `{}`: {error}", told(&at)));
        let real = fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())).map_err(failed)?;
        let about = fs::metadata(format!("/proc/self/fd/{}", open.as_raw_fd())).map_err(failed)?;
        let is_plain = about.is_dir() || about.is_file();
        if !is_plain || is_of_the_kernel(&open).map_err(failed)? {
            return invalid(format!(
                "bind `{}` is neither a folder nor a file of a disk; sockets, devices and doors to the kernel stay outside",
                told(&real)
            ));
        }
        if real.to_str().is_none_or(|text| text.contains(char::is_control)) {
            return invalid(format!("bind `{}`: a runtime takes names of plain text only", told(&real)));
        }
        let id = (about.dev(), about.ino());
        Ok(Self { real, at, access: bind.access, id, is_folder: about.is_dir(), open })
    }
}

/// A name in one line, whatever is in it.
fn told(name: impl AsRef<OsStr>) -> String {
    let mut line = String::new();
    for letter in name.as_ref().to_string_lossy().chars() {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}

fn is_of_the_kernel(open: &OwnedFd) -> io::Result<bool> {
    let kind = rustix::fs::fstatfs(open.as_fd())?.f_type;
    Ok(KERNEL_FILES.contains(&kind))
}

fn check_places(shown: &[Shown]) -> Result<(), SpawnError> {
    let mut seen = BTreeSet::new();
    for one in shown {
        let is_taken = TAKEN.iter().any(|taken| one.at.starts_with(taken)) || one.at == Path::new("/tmp");
        if is_taken || one.at == Path::new("/") {
            return invalid(format!(
                "nothing can be bound at `{}`, which is the container's own",
                told(&one.at)
            ));
        }
        if !seen.insert(&one.at) {
            return invalid(format!("two binds are at `{}`", told(&one.at)));
        }
    }
    Ok(())
}

/// In the place of what the image says about names, and of nothing that a bind shows.
fn names(shown: &[Shown]) -> Result<(Shown, NameFile), SpawnError> {
    let at = Path::new(NAME_FILE_PLACE);
    if shown.iter().any(|one| one.at.starts_with(at)) {
        return invalid(format!("nothing can be bound at `{NAME_FILE_PLACE}`, which leads to the way out"));
    }
    let file = NameFile::make()
        .map_err(|error| SpawnError::Failed(format!("`{NAME_FILE_PLACE}` cannot be made: {error}")))?;
    let source = Source::Path(file.path().to_owned());
    Ok((Shown::open(Bind { source, at: at.to_owned(), access: Access::Read })?, file))
}

/// The latch at a place where nothing is bound.
fn hook(shown: &[Shown]) -> Result<(Shown, Latch), SpawnError> {
    let at = Path::new(latch::PLACE);
    if shown.iter().any(|one| one.at.starts_with(at)) {
        return invalid(format!("nothing can be bound at `{}`, which holds the command back", latch::PLACE));
    }
    let latch = Latch::make()
        .map_err(|error| SpawnError::Failed(format!("`{}` cannot be made: {error}", latch::PLACE)))?;
    let source = Source::Path(latch.path().to_owned());
    Ok((Shown::open(Bind { source, at: at.to_owned(), access: Access::Execute })?, latch))
}

/// What in the binds leads to somebody outside.
fn doors(shown: &[Shown], deadline: Duration) -> Result<Vec<PathBuf>, SpawnError> {
    let mut search = doors::Search::within(deadline);
    for one in shown.iter().filter(|one| one.is_folder) {
        search.look_through(one.open.as_fd(), &one.real, one.access)?;
    }
    Ok(search.doors())
}

/// The binds, the folders in them that stay where they are, and, over them, the covers.
fn mounts(
    shown: Vec<Shown>,
    ours: Vec<Shown>,
    hidden: &[PathBuf],
    large: &[PathBuf],
    doors: Vec<PathBuf>,
) -> Result<(Vec<Mount>, Option<Masks>), SpawnError> {
    let failed = |error: io::Error| SpawnError::Failed(format!("what is hidden cannot be covered: {error}"));
    let (mut hidden, unseen) = masks::existing(hidden, large).map_err(failed)?;
    let overlaps =
        |path: &&PathBuf| shown.iter().any(|one| path.starts_with(&one.real) || one.real.starts_with(path));
    if let Some(path) = unseen.iter().find(overlaps) {
        return invalid(format!(
            "`{}` is hidden, lies in a bind and cannot be looked at; bind less",
            told(path)
        ));
    }
    let places: Vec<PathBuf> = shown.iter().map(|one| one.real.clone()).collect();
    let others = masks::other_names(&hidden, &places).map_err(failed)?;
    for real in others.into_iter().chain(doors) {
        match fs::symlink_metadata(&real) {
            Ok(about) => hidden.push(Hidden { real, about, is_large: false }),
            // Gone since it was found, and nothing is left to be covered.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let covers = covers(&shown, &hidden)?;
    let masks = if covers.is_empty() { None } else { Some(Masks::make().map_err(failed)?) };
    let mut mounts = Vec::new();
    for (target, about) in &covers {
        let source = masks.as_ref().map(|masks| masks.over(about)).unwrap_or_default();
        let id = masks::id(&fs::symlink_metadata(&source).map_err(failed)?);
        let (source, target) = (source.to_string_lossy().into_owned(), place(target)?);
        mounts.push(Mount { source, target, access: Access::Read, id, _open: None });
    }
    let pins = pins(&shown, &covers)?;
    for one in shown.into_iter().chain(pins).chain(ours) {
        if !covers.iter().any(|(target, _)| *target == one.at) {
            let (source, target) = (one.real.to_string_lossy().into_owned(), place(&one.at)?);
            mounts.push(Mount { source, target, access: one.access, id: one.id, _open: Some(one.open) });
        }
    }
    mounts.sort_by(|one, other| one.target.cmp(&other.target));
    Ok((mounts, masks))
}

/// The folders between a writable bind and what is covered or bound in it, each as a bind of itself, so that nobody can
/// move it: whoever moved it would find what is hidden in it uncovered in the next container, and could put something else in
/// its place.
fn pins(shown: &[Shown], covers: &[(PathBuf, fs::Metadata)]) -> Result<Vec<Shown>, SpawnError> {
    let mut pins: BTreeMap<&Path, Shown> = BTreeMap::new();
    for place in covers.iter().map(|(target, _)| target).chain(shown.iter().map(|one| &one.at)) {
        let around = shown.iter().filter(|one| place.starts_with(&one.at) && *place != one.at);
        let outer = around.max_by_key(|one| one.at.components().count());
        let Some(outer) = outer.filter(|outer| outer.access == Access::Write) else { continue };
        for folder in place.ancestors().skip(1).take_while(|folder| *folder != outer.at) {
            let Ok(below) = folder.strip_prefix(&outer.at) else { continue };
            let real = outer.real.join(below);
            // What is not there, no folder or mounted there is not seen through the bind either.
            let is_seen =
                fs::symlink_metadata(&real).is_ok_and(|about| about.is_dir() && about.dev() == outer.id.0);
            if !is_seen || pins.contains_key(folder) {
                continue;
            }
            let source = Source::Path(real.clone());
            let pin = Shown::open(Bind { source, at: folder.to_owned(), access: outer.access })?;
            if pin.real != real {
                let why = format!("`{}` was replaced while the container was made; try again", told(&real));
                return Err(SpawnError::Failed(why));
            }
            pins.insert(folder, pin);
        }
    }
    Ok(pins.into_values().collect())
}

/// Where something hidden would be seen, and of what kind it is there.
fn covers(shown: &[Shown], hidden: &[Hidden]) -> Result<Vec<(PathBuf, fs::Metadata)>, SpawnError> {
    let mut covers: Vec<(PathBuf, fs::Metadata)> = Vec::new();
    for one in shown {
        for Hidden { real, about, .. } in hidden {
            let (target, about) = if one.real.starts_with(real) {
                let about = fs::symlink_metadata(&one.real)
                    .map_err(|error| SpawnError::Failed(format!("bind `{}`: {error}", told(&one.real))))?;
                (one.at.clone(), about)
            } else if let Ok(below) = real.strip_prefix(&one.real) {
                (one.at.join(below), about.clone())
            } else {
                continue;
            };
            // Another bind may lie over this place; then it is that one which shows something, or not.
            let is_shown_by = |other: &&Shown| target.starts_with(&other.at);
            let innermost =
                shown.iter().filter(is_shown_by).max_by_key(|other| other.at.components().count());
            if innermost.is_none_or(|innermost| innermost.at == one.at) {
                covers.push((target, about));
            }
        }
    }
    covers.sort_by(|one, other| one.0.cmp(&other.0));
    // What lies in something covered is covered.
    covers.dedup_by(|later, earlier| later.0.starts_with(&earlier.0));
    for (target, _) in &covers {
        if let Some(inner) = shown.iter().find(|one| one.at.starts_with(target) && one.at != *target) {
            return invalid(format!(
                "bind at `{}` lies in `{}`, which is hidden",
                told(&inner.at),
                told(target)
            ));
        }
    }
    Ok(covers)
}

/// Runtimes read lines of at most 64 KiB.
const LONGEST_VALUE: usize = 60_000;

/// What the container's own file systems are mounted at.
const TAKEN: [&str; 3] = ["/proc", "/sys", "/dev"];

/// File systems that are no files: proc, sys, pseudo-terminals, control groups of both versions, debugging, tracing, security, BPF,
/// devices and message queues of the kernel.
const KERNEL_FILES: [i64; 11] = [
    0x9fa0,
    0x6265_6572,
    0x1cd1,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xcafe_4a11,
    0x6165_676c,
    0x1980_0202,
];

#[cfg(test)]
mod tests;
