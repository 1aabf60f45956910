//! Runs the runtime's command-line program with a timeout and a clean environment.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    process::{Pid, PidfdFlags},
};

use super::{Runtime, RuntimeKind, RuntimeProgram};

/// Exit status and output of the program.
#[derive(Debug)]
pub(super) struct ClientOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Runs the program to its end and collects its output; kills it after `limit`.
pub(super) fn ask(
    program: &RuntimeProgram,
    arguments: &[String],
    input: &[u8],
    limit: Duration,
) -> io::Result<ClientOutput> {
    let mut command = command(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdout, stderr) = (collect(child.stdout.take())?, collect(child.stderr.take())?);
    write_input(child.stdin.take(), input.to_vec())?;
    let status = wait(&mut child, limit)?;
    Ok(ClientOutput { status, stdout: collected(&stdout), stderr: collected(&stderr) })
}

impl ClientOutput {
    /// The output of a successful program, or its error message.
    pub(super) fn success_output(self) -> Result<Vec<u8>, String> {
        if self.status.success() { Ok(self.stdout) } else { Err(error_line(&self.stderr)) }
    }
}

/// The last line that is not empty. Not truncated: the handler redacts secrets first, and finds only whole ones.
pub(super) fn error_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no reason given");
    let line = line.strip_prefix("Error: ").unwrap_or(line);
    line.chars().filter(|letter| !letter.is_control()).collect()
}

/// The program, with an environment that contains nothing from a tool or a caller.
pub(super) fn command(program: &RuntimeProgram) -> Command {
    let mut command = Command::new(&program.path);
    command.args(&program.options).env_clear().envs(environment()).current_dir("/").process_group(0);
    command
}

/// Starts a container and connects its pipes to ours.
pub(super) fn attach(runtime: &Runtime, name: &str) -> io::Result<tokio::process::Child> {
    let mut command = tokio::process::Command::from(command(&runtime.program));
    command.args(["start", "--attach", "--interactive"]).kill_on_drop(true);
    if runtime.program.kind == RuntimeKind::Podman {
        // Docker's client forwards no signal that we could send.
        command.arg("--sig-proxy=false");
    }
    command.arg(name);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn()
}

/// Keeps only variables that locate the user's runtime state. None of them selects another runtime or
/// configuration.
fn environment() -> Vec<(&'static str, OsString)> {
    let kept = ["HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];
    let mut environment: Vec<(&str, OsString)> =
        kept.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))).collect();
    environment.push(("PATH", PATH.into()));
    environment.push(("LC_ALL", "C".into()));
    environment
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> io::Result<Receiver<Vec<u8>>> {
    let (send, receive) = mpsc::channel();
    thread::Builder::new().name("container-client".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(MAX_BYTES).read_to_end(&mut bytes);
            // Drains the rest, because a program that cannot write does not end.
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        let _ = send.send(bytes);
    })?;
    Ok(receive)
}

/// The collected output. It is empty if a monitor that the program left behind holds the pipe open.
fn collected(pipe: &Receiver<Vec<u8>>) -> Vec<u8> {
    pipe.recv_timeout(OUTPUT_GRACE).unwrap_or_default()
}

fn write_input(pipe: Option<impl Write + Send + 'static>, bytes: Vec<u8>) -> io::Result<()> {
    thread::Builder::new().name("container-client".to_owned()).spawn(move || {
        if let Some(mut pipe) = pipe {
            let _ = pipe.write_all(&bytes);
        }
    })?;
    Ok(())
}

fn wait(child: &mut Child, limit: Duration) -> io::Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let timeout = Timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    let ended = rustix::io::retry_on_intr(|| {
        rustix::event::poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout))
    })?;
    if ended == 0 {
        let _ = child.kill();
        child.wait()?;
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no response within {} s", limit.as_secs()),
        ));
    }
    child.wait()
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// More than any output we need.
const MAX_BYTES: u64 = 8 << 20;
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::RuntimeKind;

    fn shell(script: &str, input: &[u8], limit: Duration) -> io::Result<ClientOutput> {
        let program =
            RuntimeProgram { kind: RuntimeKind::Docker, path: "/bin/sh".into(), options: Vec::new() };
        ask(&program, &["-c".to_owned(), script.to_owned()], input, limit)
    }

    #[test]
    fn output_is_collected_and_an_error_is_one_line() {
        let answer =
            shell("cat; echo warning >&2; printf 'Error: no \\033[1mway\\n\\n' >&2; exit 3", b"hello", LIMIT);
        let answer = answer.unwrap();
        assert_eq!((answer.status.code(), answer.stdout.as_slice()), (Some(3), b"hello".as_slice()));
        assert_eq!(answer.success_output().unwrap_err(), "no [1mway");
    }

    #[test]
    fn hanging_program_is_killed() {
        let error = shell("exec sleep 1000", b"", Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn large_output_is_truncated_and_unread_input_is_not_an_error() {
        let answer = shell("head -c 20000000 /dev/zero", &vec![b'x'; 1 << 20], LIMIT).unwrap();
        assert_eq!(answer.stdout.len() as u64, MAX_BYTES);
    }

    #[test]
    fn only_listed_environment_variables_are_passed_on() {
        let answer = shell("env", b"", LIMIT).unwrap();
        let text = String::from_utf8(answer.stdout).unwrap();
        let allowed =
            ["HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "PATH", "LC_ALL", "PWD", "SHLVL", "_"];
        for line in text.lines() {
            let name = line.split('=').next().unwrap();
            assert!(allowed.contains(&name), "{line}");
        }
        assert!(text.contains(&format!("PATH={PATH}\n")));
    }

    const LIMIT: Duration = Duration::from_mins(1);
}
