//! How is something held until it was looked at, where the runtime makes it only by starting it?
//!
//! Docker has no step between making a container and running its program. So the program that it runs is a latch of ours (`c/latch.c`),
//! bound into the container: it tells what is at the places of the binds, waits to be let go, and becomes the command.

use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::StatVfsMountFlags;
use tempfile::{NamedTempFile, TempPath};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr},
    time::timeout,
};

use super::{
    client,
    leash::Leash,
    look::Files,
    masks::Id,
    plan::{Mount, Plan},
};

/// The latch as a file of the host. Gone with this value.
#[derive(Debug)]
pub(super) struct Latch(TempPath);

impl Latch {
    pub(super) fn make() -> io::Result<Self> {
        let folder = FOLDERS.iter().map(|folder| folder()).find(|folder| programs_run_in(folder)).ok_or_else(
            || io::Error::other("no program can be run in the folder for temporary files nor in `/var/tmp`; set TMPDIR to one where it can"),
        )?;
        let file: NamedTempFile = tempfile::Builder::new().prefix("toolgate-latch-").tempfile_in(folder)?;
        fs::write(file.path(), PROGRAM)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o555))?;
        // Closed, for a program that somebody may write to cannot be run.
        Ok(Self(file.into_temp_path()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

fn programs_run_in(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|about| !about.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// What stands before the words of the command.
pub(super) fn words(mounts: &[Mount]) -> Vec<String> {
    let links = |mount: &Mount| if mount.is_in_one_of(mounts) { 'n' } else { 'l' };
    let places = mounts.iter().map(|mount| format!("{}{}", links(mount), mount.target));
    [PLACE.to_owned(), mounts.len().to_string()].into_iter().chain(places).collect()
}

/// A container whose first process waits to be let go.
#[derive(Debug)]
pub(super) struct Latched {
    /// Its pipes are the command's from then on.
    pub(super) client: Child,
    told: Vec<u8>,
}

impl Latched {
    /// Starts the container, and hears the latch out. Without an answer nothing of the command runs, nor will it.
    pub(super) async fn start(leash: &Leash, plan: &Plan) -> Result<Self, String> {
        let mut client = client::attach(leash.runtime(), &leash.name).map_err(|error| error.to_string())?;
        let mut told = vec![0; plan.mounts.len() * ACCOUNT];
        if let Some(output) = client.stdout.as_mut()
            && output.read_exact(&mut told).await.is_ok()
        {
            return Ok(Self { client, told });
        }
        Err(last_words(client.stderr.take()).await)
    }

    /// What it saw at the places of the binds and covers.
    pub(super) fn files(&self, plan: &Plan) -> Files {
        let (accounts, _) = self.told.as_chunks::<ACCOUNT>();
        let seen: Vec<Option<Id>> = accounts.iter().map(id).collect();
        let meant: Vec<Option<Id>> = plan.mounts.iter().map(|mount| Some(mount.id)).collect();
        if seen == meant { Files::Same } else { Files::Other }
    }
}

/// Two machine words: a device, and the number of a file on it.
fn id(account: &[u8; ACCOUNT]) -> Option<Id> {
    match account.as_chunks::<8>() {
        ([device, number], []) => Some((u64::from_ne_bytes(*device), u64::from_ne_bytes(*number))),
        _ => None,
    }
}

/// Why it did not come so far: the latch's own word, or that of the runtime.
async fn last_words(stderr: Option<ChildStderr>) -> String {
    let mut text = Vec::new();
    if let Some(stderr) = stderr {
        let _ = timeout(PATIENCE, stderr.take(MOST_BYTES).read_to_end(&mut text)).await;
    }
    client::complaint(&text)
}

/// Where it is in the container. Nothing else can be bound there.
pub(super) const PLACE: &str = "/.toolgate-latch";

/// The byte that lets go.
pub(super) const GO: u8 = b'g';

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/latch"));

/// Of one place.
const ACCOUNT: usize = 16;

const FOLDERS: [fn() -> PathBuf; 2] = [env::temp_dir, || PathBuf::from("/var/tmp")];
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        os::unix::fs::symlink,
        process::{Command, Output, Stdio},
    };

    use super::*;
    use crate::Access;

    /// The latch itself, outside of any container.
    fn run(words: &[&str], input: &[u8]) -> Output {
        let latch = Latch::make().unwrap();
        let mut command = Command::new(latch.path());
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = loop {
            match command.spawn() {
                // Another test's child, which has not become a program yet, may hold the file open for writing.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                spawned => break spawned.unwrap(),
            }
        };
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    fn told(output: &Output) -> Vec<Option<Id>> {
        output.stdout.as_chunks::<ACCOUNT>().0.iter().map(id).collect()
    }

    #[test]
    fn it_becomes_the_command_when_it_is_let_go_and_not_before() {
        let command = ["0", "sh", "-c", "cat; echo \"$0 $1\"; exit 7", "--privileged", ""];
        let output = run(&command, b"ginput\n");
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(7), &b"input\n--privileged \n"[..])
        );
        for other in [&b""[..], b"x", b"\0", b"Go"] {
            let output = run(&command, other);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{other:?}");
        }
    }

    #[test]
    fn it_tells_what_is_at_a_place_and_whether_a_link_leads_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::create_dir(path("real")).unwrap();
        fs::write(path("real/file"), "").unwrap();
        symlink("real", path("link")).unwrap();
        let id_of = |name: &str| fs::metadata(path(name)).ok().map(|about| super::super::masks::id(&about));
        let places = [
            format!("l{}", path("real")),
            format!("l{}", path("link/file")),
            format!("n{}", path("real/file")),
            format!("n{}", path("link/file")),
            format!("n{}", path("link")),
            format!("l{}", path("absent")),
        ];
        let count = places.len().to_string();
        let words: Vec<&str> =
            [count.as_str()].into_iter().chain(places.iter().map(String::as_str)).chain(["true"]).collect();
        let seen = told(&run(&words, b"g"));
        let (folder, file, nothing) = (id_of("real"), id_of("real/file"), Some((0, 0)));
        assert_eq!(seen, [folder, file, file, nothing, nothing, nothing]);
    }

    #[test]
    fn a_program_that_is_not_there_is_told_before_anything_else() {
        for program in ["absent", "/bin/absent", "/etc", "", "--privileged", "../../bin/absent"] {
            let output = run(&["1", "l/etc", program], b"g");
            assert_eq!((output.status.code(), output.stdout.len()), (Some(127), 0), "{program}");
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(said, format!("`{program}` is no program that can be run in the image\n"));
        }
    }

    #[test]
    fn words_that_make_no_sense_run_nothing() {
        let rows: [&[&str]; 7] = [
            &[],
            &["0"],
            &["1", "true"],
            &["-1", "true"],
            &["x", "true"],
            &["", "true"],
            &["99999999", "true"],
        ];
        for words in rows {
            assert_eq!(run(words, b"g").status.code(), Some(125), "{words:?}");
        }
    }

    #[test]
    fn a_place_in_a_bind_is_told_without_links() {
        let mounts = [("/w", Access::Write), ("/w/inner", Access::Read), ("/wide", Access::Read)]
            .map(|(target, access)| Mount::for_tests("/etc", target, access));
        assert_eq!(words(&mounts), [PLACE, "3", "l/w", "n/w/inner", "l/wide"]);
    }

    #[test]
    fn its_file_can_be_run_by_everybody_and_goes_away() {
        let latch = Latch::make().unwrap();
        let path = latch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o555);
        drop(latch);
        assert!(!path.exists());
    }
}
