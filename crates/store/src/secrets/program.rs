//! Runs a helper program such as `secret-tool` or `pass`, with a time limit and few variables.

use std::{
    ffi::OsStr,
    io::{Read as _, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use zeroize::Zeroizing;

/// A helper program. Its standard error is dropped, because it may repeat a secret.
pub(crate) struct HelperProgram<'p> {
    pub argv: &'p [String],
    pub input: &'p [u8],
    /// Variables that it gets besides `BASIC_VARIABLES`.
    pub pass_env: &'p [String],
    /// Directories in which a program is not looked for, because tools may write there.
    pub apart_from: &'p [PathBuf],
}

impl HelperProgram<'_> {
    /// The standard output of a successful run.
    pub fn output(&self) -> Result<Zeroizing<Vec<u8>>, String> {
        let (program, arguments) = self.argv.split_first().ok_or("no program is named")?;
        let path = find(program, self.apart_from).ok_or_else(|| format!("`{program}` is not installed"))?;
        let mut command = Command::new(path);
        command.args(arguments).env_clear().current_dir("/").process_group(0);
        for name in BASIC_VARIABLES.iter().copied().chain(self.pass_env.iter().map(String::as_str)) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        let output = exchange(&mut child, self.input);
        let ended = wait(&mut child, Instant::now() + if output.is_ok() { GRACE } else { Duration::ZERO });
        let output = output.map_err(|problem| format!("`{program}` {problem}"))?;
        match ended {
            Some(status) if status.success() => Ok(output),
            Some(status) => Err(format!("`{program}` failed ({status})")),
            None => Err(format!("`{program}` did not end")),
        }
    }
}

/// The program in `PATH`. A name with `/` is used as it is.
fn find(program: &str, apart_from: &[PathBuf]) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    find_in(program, &std::env::var_os("PATH")?, apart_from)
}

pub(super) fn find_in(program: &str, path: &OsStr, apart_from: &[PathBuf]) -> Option<PathBuf> {
    let apart_from: Vec<PathBuf> = apart_from.iter().filter_map(|dir| dir.canonicalize().ok()).collect();
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).find_map(|dir| {
        let real = dir.join(program).canonicalize().ok().filter(|real| real.is_file())?;
        let is_apart = |path: &Path| !apart_from.iter().any(|other| path.starts_with(other));
        (is_apart(&real) && is_apart(&dir.canonicalize().ok()?)).then(|| dir.join(program))
    })
}

/// Sends the input and reads the output until it is closed.
fn exchange(child: &mut Child, input: &[u8]) -> Result<Zeroizing<Vec<u8>>, String> {
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input may still answer. Inputs are shorter than a pipe's buffer.
        let _ = stdin.write_all(input);
    }
    let Some(stdout) = child.stdout.take() else { return Err("has no output".to_owned()) };
    let (send, read) = mpsc::channel();
    std::thread::spawn(move || {
        // Reserved, because a growing buffer would leave a copy behind.
        let mut output = Zeroizing::new(Vec::with_capacity(MAX_OUTPUT + 1));
        let most = u64::try_from(MAX_OUTPUT).unwrap_or(u64::MAX).saturating_add(1);
        let result = stdout.take(most).read_to_end(&mut output).map(|_| output);
        let _ = send.send(result);
    });
    match read.recv_timeout(TIME_LIMIT) {
        Ok(Ok(output)) if output.len() <= MAX_OUTPUT => Ok(output),
        Ok(Ok(_)) => Err(format!("wrote more than {} KiB", MAX_OUTPUT >> 10)),
        Ok(Err(error)) => Err(format!("could not be read: {error}")),
        Err(_) => Err(format!("did not answer within {} s", TIME_LIMIT.as_secs())),
    }
}

/// Kills the program and its children if it has not ended by then.
fn wait(child: &mut Child, until: Instant) -> Option<std::process::ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(PAUSE),
            _ => break,
        }
    }
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    None
}

/// Needed by programs to find their files, their agents and the keyring.
const BASIC_VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "LANG", "LC_ALL", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Between the end of the output and the end of the program.
const GRACE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);
const MAX_OUTPUT: usize = 64 << 10;
