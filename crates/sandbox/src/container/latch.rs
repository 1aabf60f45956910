//! Delays a command until its container was inspected, where the runtime has no separate start step.
//!
//! Docker has no step between creating a container and running its program. So it runs our latch (`c/latch.c`),
//! which is bound into the container. The latch reports the device and inode at each bind target, waits for a
//! go-ahead, and executes the command.

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
    leash::ContainerLeash,
    masks::FileId,
    observation::FileComparison,
    plan::{ContainerMount, Plan},
};

/// The latch as a file on the host, removed on drop.
#[derive(Debug)]
pub(super) struct Latch(TempPath);

impl Latch {
    pub(super) fn make() -> io::Result<Self> {
        let dir = DIRS.iter().map(|dir| dir()).find(|dir| programs_run_in(dir)).ok_or_else(
            || io::Error::other("programs cannot run in the directory for temporary files or in `/var/tmp` (mounted `noexec`); set TMPDIR to a directory without `noexec`"),
        )?;
        let file: NamedTempFile = tempfile::Builder::new().prefix("toolgate-latch-").tempfile_in(dir)?;
        fs::write(file.path(), PROGRAM)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o555))?;
        // Closed, because a program that is open for writing cannot be executed.
        Ok(Self(file.into_temp_path()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

fn programs_run_in(dir: &Path) -> bool {
    rustix::fs::statvfs(dir).is_ok_and(|about| !about.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// The arguments before those of the command.
pub(super) fn arguments(mounts: &[ContainerMount]) -> Vec<String> {
    let links = |mount: &ContainerMount| if mount.is_in_one_of(mounts) { 'n' } else { 'l' };
    let places = mounts.iter().map(|mount| format!("{}{}", links(mount), mount.target));
    [PATH.to_owned(), mounts.len().to_string()].into_iter().chain(places).collect()
}

/// A container whose first process waits for the go-ahead.
#[derive(Debug)]
pub(super) struct Latched {
    /// Its pipes become the command's.
    pub(super) client: Child,
    report: Vec<u8>,
}

impl Latched {
    /// Starts the container and reads the latch's report. Without a report the command does not run, now or later.
    pub(super) async fn start(leash: &ContainerLeash, plan: &Plan) -> Result<Self, String> {
        let mut client = client::attach(leash.runtime(), &leash.name).map_err(|error| error.to_string())?;
        let mut report = vec![0; plan.mounts.len() * FILE_ID_BYTES];
        if let Some(output) = client.stdout.as_mut()
            && output.read_exact(&mut report).await.is_ok()
        {
            return Ok(Self { client, report });
        }
        Err(start_error(client.stderr.take()).await)
    }

    /// Compares the files at the bind targets and masks with the planned ones.
    pub(super) fn files(&self, plan: &Plan) -> FileComparison {
        let (accounts, _) = self.report.as_chunks::<FILE_ID_BYTES>();
        let seen: Vec<Option<FileId>> = accounts.iter().map(id).collect();
        let meant: Vec<Option<FileId>> = plan.mounts.iter().map(|mount| Some(mount.id)).collect();
        if seen == meant { FileComparison::Same } else { FileComparison::Other }
    }
}

/// Two machine words: device and inode.
fn id(account: &[u8; FILE_ID_BYTES]) -> Option<FileId> {
    match account.as_chunks::<8>() {
        ([device, number], []) => Some((u64::from_ne_bytes(*device), u64::from_ne_bytes(*number))),
        _ => None,
    }
}

/// Why it failed: the message of the latch or of the runtime.
async fn start_error(stderr: Option<ChildStderr>) -> String {
    let mut text = Vec::new();
    if let Some(stderr) = stderr {
        let _ = timeout(OUTPUT_GRACE, stderr.take(MAX_BYTES).read_to_end(&mut text)).await;
    }
    client::error_line(&text)
}

/// Path of the latch in the container. Nothing else can be bound there.
pub(super) const PATH: &str = "/.toolgate-latch";

/// The go-ahead byte.
pub(super) const GO: u8 = b'g';

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/latch"));

/// Bytes of the report for one path.
const FILE_ID_BYTES: usize = 16;

const DIRS: [fn() -> PathBuf; 2] = [env::temp_dir, || PathBuf::from("/var/tmp")];
const OUTPUT_GRACE: Duration = Duration::from_secs(2);
const MAX_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        os::unix::fs::symlink,
        process::{Command, Output, Stdio},
    };

    use super::*;
    use crate::Access;

    /// Runs the latch outside of any container.
    fn run(words: &[&str], input: &[u8]) -> Output {
        let latch = Latch::make().unwrap();
        let mut command = Command::new(latch.path());
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = loop {
            match command.spawn() {
                // Another test's child that has not called exec yet may hold the file open for writing.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                spawned => break spawned.unwrap(),
            }
        };
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    fn report(output: &Output) -> Vec<Option<FileId>> {
        output.stdout.as_chunks::<FILE_ID_BYTES>().0.iter().map(id).collect()
    }

    #[test]
    fn latch_executes_the_command_only_after_the_go_ahead() {
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
    fn latch_reports_files_and_symlinks_at_its_paths() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
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
        let seen = report(&run(&words, b"g"));
        let (dir, file, nothing) = (id_of("real"), id_of("real/file"), Some((0, 0)));
        assert_eq!(seen, [dir, file, file, nothing, nothing, nothing]);
    }

    #[test]
    fn missing_program_is_reported_first() {
        for program in ["absent", "/bin/absent", "/etc", "", "--privileged", "../../bin/absent"] {
            let output = run(&["1", "l/etc", program], b"g");
            assert_eq!((output.status.code(), output.stdout.len()), (Some(127), 0), "{program}");
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(said, format!("`{program}` is not an executable program in the image\n"));
        }
    }

    #[test]
    fn invalid_arguments_run_nothing() {
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
    fn paths_inside_a_bind_are_resolved_without_symlinks() {
        let mounts = [("/w", Access::Write), ("/w/inner", Access::Read), ("/wide", Access::Read)]
            .map(|(target, access)| ContainerMount::for_tests("/etc", target, access));
        assert_eq!(arguments(&mounts), [PATH, "3", "l/w", "n/w/inner", "l/wide"]);
    }

    #[test]
    fn latch_file_is_executable_and_removed_on_drop() {
        let latch = Latch::make().unwrap();
        let path = latch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o555);
        drop(latch);
        assert!(!path.exists());
    }
}
