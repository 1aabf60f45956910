//! Validates a container request and resolves it: every path, bind and mask.

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
    ContainerJail, ContainerLimits, ContainerUser, RuntimeKind,
    latch::{self, Latch},
    masks::{self, FileId, HiddenPath, Masks},
    network::{RESOLV_CONF_PATH, ResolvConf},
    socket_files::SocketSearch,
};
use crate::{Access, Bind, Network, Source, SpawnError};

/// A validated container. Its text contains nothing that a runtime could interpret differently.
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
    /// Sorted: outer mounts before inner ones.
    pub(super) mounts: Vec<ContainerMount>,
    /// Masks must exist as long as the container.
    _masks: Option<Masks>,
    /// As must the `resolv.conf`.
    _names: Option<ResolvConf>,
    /// As must the latch, which delays the command until inspection; only for runtimes without a separate start
    /// step.
    latch: Option<Latch>,
}

#[derive(Debug)]
pub(super) struct ContainerMount {
    pub(super) source: String,
    pub(super) target: String,
    pub(super) access: Access,
    pub(super) id: FileId,
    /// While it is open, no other file can get its inode number.
    _open: Option<OwnedFd>,
}

impl Plan {
    pub(super) fn check(jail: ContainerJail, runtime: RuntimeKind) -> Result<Self, SpawnError> {
        if jail.network == (Network::Proxied { http_port: 0 }) {
            return invalid("the proxy port is 0; give the port that the command uses");
        }
        if jail.user.uid == 0 || jail.user.gid == 0 {
            return invalid("containers do not run as root; give another user and group");
        }
        check_limits(&jail.limits, jail.view.tmp_bytes)?;
        let argv: Vec<String> = jail.argv.iter().map(|word| argument(word)).collect::<Result<_, _>>()?;
        if argv.first().is_none_or(String::is_empty) {
            return invalid("no program is given");
        }
        let shown: Vec<OpenedBind> =
            jail.view.binds.into_iter().map(OpenedBind::open).collect::<Result<_, _>>()?;
        check_targets(&shown)?;
        let names = match jail.network {
            Network::None => None,
            Network::Proxied { .. } => Some(bind_resolv_conf(&shown)?),
        };
        let (names, name_file) = names.unzip();
        let (hook, latch) = match runtime {
            RuntimeKind::Podman => None,
            RuntimeKind::Docker => Some(bind_latch(&shown)?),
        }
        .unzip();
        let sockets = socket_files(&shown, jail.deadline)?;
        let ours = names.into_iter().chain(hook).collect();
        let (mounts, masks) = mounts(shown, ours, &jail.view.hidden, &jail.view.hidden_large, sockets)?;
        Ok(Self {
            image: jail.image.as_str().to_owned(),
            argv,
            env: environment(&jail.env)?,
            cwd: container_path(&jail.cwd)?,
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

    /// The arguments that the container is created with.
    pub(super) fn command(&self) -> Vec<String> {
        let before = if self.has_latch() { latch::arguments(&self.mounts) } else { Vec::new() };
        before.into_iter().chain(self.argv.iter().cloned()).collect()
    }

    pub(super) fn has_latch(&self) -> bool {
        self.latch.is_some()
    }
}

impl ContainerMount {
    /// Whether its target is inside another mount's target.
    pub(super) fn is_in_one_of(&self, mounts: &[Self]) -> bool {
        let target = Path::new(&self.target);
        mounts.iter().any(|other| other.target != self.target && target.starts_with(&other.target))
    }
}

fn invalid<T>(why: impl Into<String>) -> Result<T, SpawnError> {
    Err(SpawnError::Invalid(why.into()))
}

/// Zero would mean "no limit" to a runtime.
fn check_limits(limits: &ContainerLimits, tmp_bytes: u64) -> Result<(), SpawnError> {
    let rows = [
        ("memory", limits.memory_bytes, 8 << 20),
        ("CPU time", limits.millicpus.into(), 10),
        ("the number of processes", limits.processes.into(), 1),
        ("the number of open files", limits.open_files.into(), 16),
        ("the size of files", limits.file_bytes, 1),
        ("the size of `/tmp`", tmp_bytes, 4096),
    ];
    for (name, value, least) in rows {
        if value < least || i64::try_from(value).is_err() {
            return invalid(format!(
                "the limit of {name} is {value}; it must be at least {least} and less than 2^63"
            ));
        }
    }
    Ok(())
}

fn argument(word: &OsStr) -> Result<String, SpawnError> {
    match word.to_str() {
        Some(text) if !text.contains('\0') => Ok(text.to_owned()),
        _ => invalid(format!(
            "the argument `{}` is not valid text; containers accept UTF-8 without NUL only",
            escaped(word)
        )),
    }
}

/// Validates variables. They are passed as lines of a file that the runtime reads. Arguments would be visible to
/// every user of the host, and some names in the runtime program's own environment would change its behaviour.
fn environment(env: &[(impl AsRef<OsStr>, impl AsRef<OsStr>)]) -> Result<Vec<(String, String)>, SpawnError> {
    let mut seen = BTreeSet::new();
    let mut checked = Vec::new();
    for (name, value) in env {
        let (name, value) = (argument(name.as_ref())?, argument(value.as_ref())?);
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if !is_name {
            return invalid(format!("`{}` is not a valid variable name", name.escape_debug()));
        }
        // The message never contains the value, which may be a secret.
        if value.contains(['\n', '\r']) || value.len() > MAX_VALUE {
            return invalid(format!(
                "the value of `{name}` contains a line break or is longer than {MAX_VALUE} bytes; pass it in a file or on standard input"
            ));
        }
        if !seen.insert(name.clone()) {
            return invalid(format!("the variable `{name}` is given twice"));
        }
        checked.push((name, value));
    }
    Ok(checked)
}

/// A path in the container: absolute, normalised, without control characters.
fn container_path(path: &Path) -> Result<String, SpawnError> {
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    match path.to_str() {
        Some(text)
            if path.is_absolute() && path.components().all(plain) && !text.contains(char::is_control) =>
        {
            Ok(path.components().collect::<PathBuf>().to_string_lossy().into_owned())
        }
        _ => invalid(format!("`{}` is not an absolute, normalised plain-text path", escaped(path))),
    }
}

/// A bind whose source is open.
struct OpenedBind {
    real: PathBuf,
    at: PathBuf,
    access: Access,
    id: FileId,
    is_dir: bool,
    open: OwnedFd,
}

impl OpenedBind {
    fn open(bind: Bind) -> Result<Self, SpawnError> {
        let at = PathBuf::from(container_path(&bind.at)?);
        let open = match bind.source {
            Source::Opened(open) => open,
            Source::Path(path) => rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| SpawnError::Invalid(format!("bind `{}`: {error}", escaped(&path))))?,
        };
        let failed = |error: io::Error| SpawnError::Failed(format!("bind at `{}`: {error}", escaped(&at)));
        let real = fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())).map_err(failed)?;
        let about = fs::metadata(format!("/proc/self/fd/{}", open.as_raw_fd())).map_err(failed)?;
        let is_plain = about.is_dir() || about.is_file();
        if !is_plain || is_kernel_file_system(&open).map_err(failed)? {
            return invalid(format!(
                "bind `{}` is neither a directory nor a regular file; sockets, devices and kernel file systems cannot be bound",
                escaped(&real)
            ));
        }
        if real.to_str().is_none_or(|text| text.contains(char::is_control)) {
            return invalid(format!(
                "bind `{}`: container runtimes accept plain-text paths only",
                escaped(&real)
            ));
        }
        let id = (about.dev(), about.ino());
        Ok(Self { real, at, access: bind.access, id, is_dir: about.is_dir(), open })
    }
}

/// A path on one line, with control characters escaped.
fn escaped(name: impl AsRef<OsStr>) -> String {
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

fn is_kernel_file_system(open: &OwnedFd) -> io::Result<bool> {
    let kind = rustix::fs::fstatfs(open.as_fd())?.f_type;
    Ok(KERNEL_FILES.contains(&kind))
}

fn check_targets(shown: &[OpenedBind]) -> Result<(), SpawnError> {
    let mut seen = BTreeSet::new();
    for one in shown {
        let is_taken = RESERVED.iter().any(|taken| one.at.starts_with(taken)) || one.at == Path::new("/tmp");
        if is_taken || one.at == Path::new("/") {
            return invalid(format!(
                "nothing can be bound at `{}`; the container reserves it",
                escaped(&one.at)
            ));
        }
        if !seen.insert(&one.at) {
            return invalid(format!("two binds have the target `{}`", escaped(&one.at)));
        }
    }
    Ok(())
}

/// Replaces the image's `resolv.conf`; conflicts with any bind there.
fn bind_resolv_conf(shown: &[OpenedBind]) -> Result<(OpenedBind, ResolvConf), SpawnError> {
    let at = Path::new(RESOLV_CONF_PATH);
    if shown.iter().any(|one| one.at.starts_with(at)) {
        return invalid(format!(
            "nothing can be bound at `{RESOLV_CONF_PATH}`; it names the DNS server of the egress proxy"
        ));
    }
    let file = ResolvConf::make()
        .map_err(|error| SpawnError::Failed(format!("cannot create `{RESOLV_CONF_PATH}`: {error}")))?;
    let source = Source::Path(file.path().to_owned());
    Ok((OpenedBind::open(Bind { source, at: at.to_owned(), access: Access::Read })?, file))
}

/// The bind of the latch; conflicts with any bind there.
fn bind_latch(shown: &[OpenedBind]) -> Result<(OpenedBind, Latch), SpawnError> {
    let at = Path::new(latch::PATH);
    if shown.iter().any(|one| one.at.starts_with(at)) {
        return invalid(format!(
            "nothing can be bound at `{}`; it is reserved for the start of the command",
            latch::PATH
        ));
    }
    let latch = Latch::make()
        .map_err(|error| SpawnError::Failed(format!("cannot create `{}`: {error}", latch::PATH)))?;
    let source = Source::Path(latch.path().to_owned());
    Ok((OpenedBind::open(Bind { source, at: at.to_owned(), access: Access::Execute })?, latch))
}

/// Sockets and pipes in the binds that reach processes on the host.
fn socket_files(shown: &[OpenedBind], deadline: Duration) -> Result<Vec<PathBuf>, SpawnError> {
    let mut search = SocketSearch::within(deadline);
    for one in shown.iter().filter(|one| one.is_dir) {
        search.search_dir(one.open.as_fd(), &one.real, one.access)?;
    }
    Ok(search.found())
}

/// The binds, the pinned directories in them, and the masks over them.
fn mounts(
    shown: Vec<OpenedBind>,
    ours: Vec<OpenedBind>,
    hidden: &[PathBuf],
    large: &[PathBuf],
    sockets: Vec<PathBuf>,
) -> Result<(Vec<ContainerMount>, Option<Masks>), SpawnError> {
    let failed = |error: io::Error| SpawnError::Failed(format!("cannot mask hidden paths: {error}"));
    let (mut hidden, unseen) = masks::existing(hidden, large).map_err(failed)?;
    let overlaps =
        |path: &&PathBuf| shown.iter().any(|one| path.starts_with(&one.real) || one.real.starts_with(path));
    if let Some(path) = unseen.iter().find(overlaps) {
        return invalid(format!(
            "`{}` is hidden, lies in a bind and cannot be accessed; bind less",
            escaped(path)
        ));
    }
    let places: Vec<PathBuf> = shown.iter().map(|one| one.real.clone()).collect();
    let others = masks::other_names(&hidden, &places).map_err(failed)?;
    for real in others.into_iter().chain(sockets) {
        match fs::symlink_metadata(&real) {
            Ok(about) => hidden.push(HiddenPath { real, about, is_large: false }),
            // Removed since it was found, so there is nothing to mask.
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
        let (source, target) = (source.to_string_lossy().into_owned(), container_path(target)?);
        mounts.push(ContainerMount { source, target, access: Access::Read, id, _open: None });
    }
    let pins = pins(&shown, &covers)?;
    for one in shown.into_iter().chain(pins).chain(ours) {
        if !covers.iter().any(|(target, _)| *target == one.at) {
            let (source, target) = (one.real.to_string_lossy().into_owned(), container_path(&one.at)?);
            mounts.push(ContainerMount {
                source,
                target,
                access: one.access,
                id: one.id,
                _open: Some(one.open),
            });
        }
    }
    mounts.sort_by(|one, other| one.target.cmp(&other.target));
    Ok((mounts, masks))
}

/// Binds each directory between a writable bind and a mask or bind in it onto itself, because a mount point cannot
/// be renamed. Otherwise a command could move the directory: its hidden content would be unmasked in the next
/// container, and another directory could take its place.
fn pins(shown: &[OpenedBind], covers: &[(PathBuf, fs::Metadata)]) -> Result<Vec<OpenedBind>, SpawnError> {
    let mut pins: BTreeMap<&Path, OpenedBind> = BTreeMap::new();
    for place in covers.iter().map(|(target, _)| target).chain(shown.iter().map(|one| &one.at)) {
        let around = shown.iter().filter(|one| place.starts_with(&one.at) && *place != one.at);
        let outer = around.max_by_key(|one| one.at.components().count());
        let Some(outer) = outer.filter(|outer| outer.access == Access::Write) else { continue };
        for dir in place.ancestors().skip(1).take_while(|dir| *dir != outer.at) {
            let Ok(below) = dir.strip_prefix(&outer.at) else { continue };
            let real = outer.real.join(below);
            // Directories that are missing, not directories or other mounts are not visible through the bind
            // either.
            let is_seen =
                fs::symlink_metadata(&real).is_ok_and(|about| about.is_dir() && about.dev() == outer.id.0);
            if !is_seen || pins.contains_key(dir) {
                continue;
            }
            let source = Source::Path(real.clone());
            let pin = OpenedBind::open(Bind { source, at: dir.to_owned(), access: outer.access })?;
            if pin.real != real {
                let why =
                    format!("`{}` was replaced while the container was created; try again", escaped(&real));
                return Err(SpawnError::Failed(why));
            }
            pins.insert(dir, pin);
        }
    }
    Ok(pins.into_values().collect())
}

/// Targets at which hidden files would be visible, with their metadata.
fn covers(shown: &[OpenedBind], hidden: &[HiddenPath]) -> Result<Vec<(PathBuf, fs::Metadata)>, SpawnError> {
    let mut covers: Vec<(PathBuf, fs::Metadata)> = Vec::new();
    for one in shown {
        for HiddenPath { real, about, .. } in hidden {
            let (target, about) = if one.real.starts_with(real) {
                let about = fs::symlink_metadata(&one.real)
                    .map_err(|error| SpawnError::Failed(format!("bind `{}`: {error}", escaped(&one.real))))?;
                (one.at.clone(), about)
            } else if let Ok(below) = real.strip_prefix(&one.real) {
                (one.at.join(below), about.clone())
            } else {
                continue;
            };
            // Another bind may cover this target; then only that bind matters.
            let is_shown_by = |other: &&OpenedBind| target.starts_with(&other.at);
            let innermost =
                shown.iter().filter(is_shown_by).max_by_key(|other| other.at.components().count());
            if innermost.is_none_or(|innermost| innermost.at == one.at) {
                covers.push((target, about));
            }
        }
    }
    covers.sort_by(|one, other| one.0.cmp(&other.0));
    // Paths inside a masked directory need no mask.
    covers.dedup_by(|later, earlier| later.0.starts_with(&earlier.0));
    for (target, _) in &covers {
        if let Some(inner) = shown.iter().find(|one| one.at.starts_with(target) && one.at != *target) {
            return invalid(format!(
                "the bind at `{}` is inside the hidden path `{}`",
                escaped(&inner.at),
                escaped(target)
            ));
        }
    }
    Ok(covers)
}

/// Runtimes read lines of at most 64 KiB.
const MAX_VALUE: usize = 60_000;

/// Mount points of the container's own file systems.
const RESERVED: [&str; 3] = ["/proc", "/sys", "/dev"];

/// File systems of the kernel: proc, sysfs, devpts, cgroup 1 and 2, debugfs, tracefs, securityfs, BPF, and the
/// kernel's own devices and message queues.
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
