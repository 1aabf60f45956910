//! How is the runtime's program asked something, without waiting for ever and without letting our environment in?

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

/// What the program answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Runs the program to its end and hears it out; kills it when it takes too long.
pub(super) fn ask(
    program: &RuntimeProgram,
    arguments: &[String],
    input: &[u8],
    patience: Duration,
) -> io::Result<Answer> {
    let mut command = command(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdout, stderr) = (hear(child.stdout.take())?, hear(child.stderr.take())?);
    feed(child.stdin.take(), input.to_vec())?;
    let status = wait(&mut child, patience)?;
    Ok(Answer { status, stdout: heard(&stdout), stderr: heard(&stderr) })
}

impl Answer {
    /// The output of a program that was content, or what it complained about.
    pub(super) fn content(self) -> Result<Vec<u8>, String> {
        if self.status.success() { Ok(self.stdout) } else { Err(complaint(&self.stderr)) }
    }
}

/// The last line that is not empty. It is not cut: the handler masks secrets first, and only finds whole ones.
pub(super) fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it does not say why");
    let line = line.strip_prefix("Error: ").unwrap_or(line);
    line.chars().filter(|letter| !letter.is_control()).collect()
}

/// The program with an environment in which nothing of a tool or a caller can be.
pub(super) fn command(program: &RuntimeProgram) -> Command {
    let mut command = Command::new(&program.path);
    command.args(&program.options).env_clear().envs(environment()).current_dir("/").process_group(0);
    command
}

/// The client that starts a container and is its pipes.
pub(super) fn attach(runtime: &Runtime, name: &str) -> io::Result<tokio::process::Child> {
    let mut command = tokio::process::Command::from(command(&runtime.program));
    command.args(["start", "--attach", "--interactive"]).kill_on_drop(true);
    if runtime.program.kind == RuntimeKind::Podman {
        // Docker's client passes no signals on that we could send.
        command.arg("--sig-proxy=false");
    }
    command.arg(name);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn()
}

/// Where an ordinary user's runtime keeps its things; nothing that chooses another runtime or another configuration.
fn environment() -> Vec<(&'static str, OsString)> {
    let kept = ["HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];
    let mut environment: Vec<(&str, OsString)> =
        kept.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))).collect();
    environment.push(("PATH", PATH.into()));
    environment.push(("LC_ALL", "C".into()));
    environment
}

fn hear(pipe: Option<impl Read + Send + 'static>) -> io::Result<Receiver<Vec<u8>>> {
    let (send, receive) = mpsc::channel();
    thread::Builder::new().name("container-client".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(MOST_BYTES).read_to_end(&mut bytes);
            // A program that cannot write does not end.
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        let _ = send.send(bytes);
    })?;
    Ok(receive)
}

/// What was heard. A monitor that the program leaves behind may hold the pipe open; then nothing was.
fn heard(pipe: &Receiver<Vec<u8>>) -> Vec<u8> {
    pipe.recv_timeout(LAST_WORDS).unwrap_or_default()
}

fn feed(pipe: Option<impl Write + Send + 'static>, bytes: Vec<u8>) -> io::Result<()> {
    thread::Builder::new().name("container-client".to_owned()).spawn(move || {
        if let Some(mut pipe) = pipe {
            let _ = pipe.write_all(&bytes);
        }
    })?;
    Ok(())
}

fn wait(child: &mut Child, patience: Duration) -> io::Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let timeout = Timespec {
        tv_sec: patience.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    let ended = rustix::io::retry_on_intr(|| {
        rustix::event::poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout))
    })?;
    if ended == 0 {
        let _ = child.kill();
        child.wait()?;
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer in {} s", patience.as_secs()),
        ));
    }
    child.wait()
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// More than any answer that we ask for.
const MOST_BYTES: u64 = 8 << 20;
const LAST_WORDS: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::RuntimeKind;

    fn shell(script: &str, input: &[u8], patience: Duration) -> io::Result<Answer> {
        let program =
            RuntimeProgram { kind: RuntimeKind::Docker, path: "/bin/sh".into(), options: Vec::new() };
        ask(&program, &["-c".to_owned(), script.to_owned()], input, patience)
    }

    #[test]
    fn an_answer_is_heard_and_a_complaint_is_one_line() {
        let answer = shell(
            "cat; echo warning >&2; printf 'Error: no \\033[1mway\\n\\n' >&2; exit 3",
            b"hello",
            PATIENCE,
        );
        let answer = answer.unwrap();
        assert_eq!((answer.status.code(), answer.stdout.as_slice()), (Some(3), b"hello".as_slice()));
        assert_eq!(answer.content().unwrap_err(), "no [1mway");
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let error = shell("exec sleep 1000", b"", Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_flood_is_cut_and_input_that_nobody_reads_is_no_error() {
        let answer = shell("head -c 20000000 /dev/zero", &vec![b'x'; 1 << 20], PATIENCE).unwrap();
        assert_eq!(answer.stdout.len() as u64, MOST_BYTES);
    }

    #[test]
    fn of_our_environment_only_the_users_own_places_are_passed_on() {
        let answer = shell("env", b"", PATIENCE).unwrap();
        let text = String::from_utf8(answer.stdout).unwrap();
        let allowed =
            ["HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "PATH", "LC_ALL", "PWD", "SHLVL", "_"];
        for line in text.lines() {
            let name = line.split('=').next().unwrap();
            assert!(allowed.contains(&name), "{line}");
        }
        assert!(text.contains(&format!("PATH={PATH}\n")));
    }

    const PATIENCE: Duration = Duration::from_mins(1);
}
