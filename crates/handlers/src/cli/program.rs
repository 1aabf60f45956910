//! Finds the program of a command once, when the tool is loaded, and checks that it is the same file at every call.
//! For a container, only its name is known.

pub mod conventions;
pub mod file_values;

use std::{
    fs::{self, File},
    io::ErrorKind,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

/// The commands that this gateway may run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum AllowedCommands {
    /// Every command that a manifest names.
    #[default]
    Any,
    /// These, by bare name or absolute path. A bare name means the one program found under it.
    Only(Vec<String>),
}

#[derive(Clone, Debug)]
pub struct Program {
    /// The name in the manifest, also used as `argv[0]`.
    pub name: String,
    /// Absolute and without symlinks; for a program in an image, its name.
    pub file: PathBuf,
    /// `None` for a program in an image.
    identity: Option<ProgramIdentity>,
}

/// Identifies a file independently of its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct ProgramIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Program {
    /// `open_folders` are directories that tools or the agent can write to.
    pub fn find(command: &str, allowed: &AllowedCommands, open_folders: &[PathBuf]) -> Result<Self, String> {
        let place = place_of(command)?;
        if let AllowedCommands::Only(list) = allowed
            && !list.iter().any(|entry| place_of(entry).is_ok_and(|known| known == place))
        {
            return Err(not_allowed(command));
        }
        let file = fs::canonicalize(&place)
            .map_err(|error| format!("the command `{command}` cannot be found: {}", error.kind()))?;
        let metadata = fs::metadata(&file)
            .map_err(|error| format!("the command `{command}` cannot be read: {}", error.kind()))?;
        let shown = file.display();
        if !metadata.is_file() || metadata.permissions().mode() & EXECUTABLE == 0 {
            return Err(format!("`{shown}` is not a program; install `{command}` or name another command"));
        }
        if metadata.permissions().mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(format!("`{shown}` can be changed by other users; run `chmod go-w {shown}`"));
        }
        for name in [&place, &file] {
            refuse_in(open_folders, name)?;
            if let Some(folder) = name.ancestors().skip(1).find(|folder| is_open_to_all(folder)) {
                return Err(format!(
                    "`{}` lies in `{}`, which everyone can write to; install the program elsewhere",
                    name.display(),
                    folder.display()
                ));
            }
        }
        Ok(Self { name: command.to_owned(), identity: Some(ProgramIdentity::of(&metadata)), file })
    }

    /// A program that the container runtime looks up. Only its name can be checked; the operator who chose the image
    /// vouches for its contents.
    pub fn in_image(
        command: &str,
        allowed: &AllowedCommands,
        open_folders: &[PathBuf],
    ) -> Result<Self, String> {
        let below = command.strip_prefix('/');
        let mut parts = below.unwrap_or(command).split('/');
        let is_plain = parts.all(|part| !matches!(part, "" | "." | ".."));
        let is_bare = !command.contains('/') && !command.starts_with('-');
        if !is_plain || !(is_bare || below.is_some()) {
            return Err(format!(
                "`{command}` cannot name a program of an image; write a bare name such as `git`, or an absolute path such as `/usr/bin/git`"
            ));
        }
        // The target of a name inside an image is unknown, so another name counts as another command.
        if let AllowedCommands::Only(list) = allowed
            && !list.iter().any(|entry| entry == command)
        {
            return Err(not_allowed(command));
        }
        // The image shows these directories under the same names.
        refuse_in(open_folders, Path::new(command))?;
        Ok(Self { name: command.to_owned(), identity: None, file: PathBuf::from(command) })
    }

    /// The open file, if it is still the one found at load time. `None` for a program in an image.
    pub fn hold(&self) -> Result<Option<File>, String> {
        let Some(identity) = self.identity else { return Ok(None) };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::open(&self.file, flags, Mode::empty()).map(File::from);
        match held.map(|held| (held.metadata(), held)) {
            Ok((Ok(metadata), held)) if ProgramIdentity::of(&metadata) == identity => Ok(Some(held)),
            _ => Err(format!(
                "`{}` is no longer the file that was loaded; reload the tools to accept it",
                self.file.display()
            )),
        }
    }

    /// Whether the program is on a disk other than the system's.
    pub fn waits_for_disk(&self) -> bool {
        self.identity.is_some() && !self.is_in_system()
    }

    /// Whether every jail shows it.
    pub fn is_in_system(&self) -> bool {
        SYSTEM.iter().any(|folder| self.file.starts_with(folder))
    }
}

impl ProgramIdentity {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

fn not_allowed(command: &str) -> String {
    format!(
        "the command `{command}` is not among the `commands.allowed` of this gateway; its operator can add it"
    )
}

fn refuse_in(open_folders: &[PathBuf], name: &Path) -> Result<(), String> {
    match open_folders.iter().find(|folder| name.starts_with(folder)) {
        Some(folder) => Err(format!(
            "`{}` lies in `{}`, where tools can write; install the program elsewhere",
            name.display(),
            folder.display()
        )),
        None => Ok(()),
    }
}

/// The path of a command. Symlinks of its directory are resolved, but not its own name: one program may behave
/// differently under several names.
fn place_of(command: &str) -> Result<PathBuf, String> {
    let is_there = |path: &Path| path.try_exists().unwrap_or(false) && !path.is_dir();
    let found = if command.starts_with('/') {
        Some(PathBuf::from(command)).filter(|path| is_there(path))
    } else {
        FOLDERS.iter().map(|folder| Path::new(folder).join(command)).find(|path| is_there(path))
    };
    let found = found.filter(|_| !command.is_empty()).ok_or_else(|| {
        let looked = if command.starts_with('/') { "there".to_owned() } else { FOLDERS.join(", ") };
        format!("the command `{command}` is not installed; looked in {looked}")
    })?;
    let (folder, name) = (found.parent().unwrap_or(Path::new("/")), found.file_name().unwrap_or_default());
    let folder = fs::canonicalize(folder).map_err(|error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => format!("the command `{command}` is not installed"),
        kind => format!("the directory of the command `{command}` cannot be read: {kind}"),
    })?;
    Ok(folder.join(name))
}

/// In a directory with the sticky bit, only owners can replace their files.
fn is_open_to_all(folder: &Path) -> bool {
    fs::metadata(folder)
        .is_ok_and(|metadata| metadata.permissions().mode() & (STICKY | WRITABLE_BY_ALL) == WRITABLE_BY_ALL)
}

/// The directories searched for bare names, and the `PATH` of commands. The gateway's own `PATH` is never used.
pub const FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];
const EXECUTABLE: u32 = 0o111;
const WRITABLE_BY_OTHERS: u32 = 0o022;
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;
