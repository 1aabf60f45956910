//! Messages between gateway, supervisor and jail.

use std::{
    ffi::{CString, OsStr, OsString},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
    time::Duration,
};

use super::{
    Access, Attempt, Bind, Children, CommandJail, CommandUsage, Ending, Refused, Source, SpawnError, Trace,
    groundwork::Groundwork, notices::Listed, passing::Parcel,
};
use crate::{
    JailKind, LayerSet,
    sys::process::ExitAccount,
    wire::{FrameReader, FrameWriter, WireError},
};

/// A jail as the supervisor reads it.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) program: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) cwd: PathBuf,
    pub(crate) binds: Vec<Bind>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) hidden_large: Vec<PathBuf>,
    /// Equal to the groundwork that the jail was prepared for.
    pub(crate) groundwork: Groundwork,
    pub(crate) required: LayerSet,
    pub(crate) trace: Trace,
    pub(crate) children: Children,
    /// Standard input, output and error.
    pub(crate) stdio: [OwnedFd; 3],
}

/// Messages from a supervisor to the gateway, and from a jail to its supervisor.
#[derive(Debug)]
pub(crate) enum Word {
    /// The command is about to run. Carries a pidfd of its first process, if there is one to kill, and the sockets.
    Started(LayerSet),
    TooWeak(Vec<String>),
    Failed(String),
    /// Sent at once, and again in the report, so a caller that leaves early has it as well.
    Refused(Refused),
    Report(Account),
    /// The host changed since the jail was prepared. The command did not run, and another jail may run it.
    Stale,
    /// From a jail: it waits for the order.
    Ready,
    /// From a jail: the sockets in its network namespace.
    Sockets,
    /// From a jail: a `/proc` directory that shows all of its processes.
    Processes,
    /// From a jail: all layers are in force, and the program is next. Carries the descriptor on which the filter
    /// notifies.
    Sealed(LayerSet),
    /// From a jail: the command ended with this status, and none of its descendants is left.
    Exit(ExitAccount),
}

/// Final report of a supervisor about its command.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) ending: Ending,
    pub(crate) usage: CommandUsage,
    pub(crate) refused: Listed,
}

/// The encoded jail, and the descriptors that follow the three standard ones.
pub(crate) fn order(jail: &CommandJail) -> Result<(Vec<u8>, Vec<BorrowedFd<'_>>), SpawnError> {
    let impossible = JailKind::Command.possible().missing(JailKind::Command, jail.required);
    if !impossible.is_empty() {
        return Err(SpawnError::TooWeak { missing: impossible.names() });
    }
    let mut writer = FrameWriter::new(ORDER);
    writer.bytes(jail.program.as_os_str().as_bytes());
    list(&mut writer, jail.argv.iter().map(OsString::as_os_str));
    let settings: Vec<OsString> = jail.env.iter().map(|(name, value)| setting(name, value)).collect();
    list(&mut writer, settings.iter().map(OsString::as_os_str));
    writer.bytes(jail.cwd.as_os_str().as_bytes());
    let mut opened = Vec::new();
    writer.u32(u32::try_from(jail.view.binds.len()).unwrap_or(u32::MAX));
    for bind in &jail.view.binds {
        writer.bytes(bind.at.as_os_str().as_bytes()).u8(bind.access as u8);
        match &bind.source {
            Source::Path(path) => writer.u8(0).bytes(path.as_os_str().as_bytes()),
            Source::Opened(descriptor) => {
                opened.push(descriptor.as_fd());
                writer.u8(1)
            }
        };
    }
    for paths in [&jail.view.hidden, &jail.view.hidden_large] {
        list(&mut writer, paths.iter().map(|path| path.as_os_str()));
    }
    Groundwork::of(jail).write(&mut writer);
    writer.u64(jail.required.to_bits());
    writer.u8(u8::from(jail.trace == Trace::Refusals));
    writer.u8(u8::from(jail.children == Children::Allowed));
    let frame = writer.finish().map_err(|error| SpawnError::Invalid(error.to_string()))?;
    Ok((frame, opened))
}

impl Order {
    pub(crate) fn read(parcel: Parcel) -> io::Result<Self> {
        if parcel.kind != ORDER {
            return Err(io::Error::other(WireError::UnknownKind(parcel.kind)));
        }
        let mut descriptors = parcel.descriptors.into_iter();
        let stdio = match (descriptors.next(), descriptors.next(), descriptors.next()) {
            (Some(input), Some(output), Some(error)) => [input, output, error],
            _ => return Err(io::Error::other("the order lacks its three standard descriptors")),
        };
        read_order(&mut FrameReader::new(&parcel.body), &mut descriptors, stdio).map_err(io::Error::other)
    }
}

fn read_order(
    reader: &mut FrameReader<'_>,
    descriptors: &mut impl Iterator<Item = OwnedFd>,
    stdio: [OwnedFd; 3],
) -> Result<Order, WireError> {
    let program = string(reader)?;
    let argv = strings(reader)?;
    let env = strings(reader)?;
    let cwd = path(reader)?;
    let mut binds = Vec::new();
    for _ in 0..reader.count(MOST_ITEMS, 6)? {
        let (at, access) = (path(reader)?, access(reader.u8()?)?);
        let source = match reader.u8()? {
            0 => Source::Path(path(reader)?),
            1 => Source::Opened(descriptors.next().ok_or(WireError::Truncated)?),
            other => return Err(WireError::UnknownValue(other)),
        };
        binds.push(Bind { source, at, access });
    }
    let (hidden, hidden_large) = (paths(reader)?, paths(reader)?);
    let groundwork = Groundwork::read_from(reader)?;
    let required = layers(reader)?;
    let trace = if reader.u8()? == 1 { Trace::Refusals } else { Trace::Off };
    let children = if reader.u8()? == 1 { Children::Allowed } else { Children::Denied };
    reader.end()?;
    let order = Order {
        program,
        argv,
        env,
        cwd,
        binds,
        hidden,
        hidden_large,
        groundwork,
        required,
        trace,
        children,
        stdio,
    };
    Ok(order)
}

impl Word {
    pub(crate) fn to_frame(&self) -> io::Result<Vec<u8>> {
        let mut writer = FrameWriter::new(self.kind());
        match self {
            Self::Started(strength) | Self::Sealed(strength) => drop(writer.u64(strength.to_bits())),
            Self::TooWeak(missing) => list(&mut writer, missing.iter().map(OsStr::new)),
            Self::Failed(why) => drop(writer.text(why)),
            Self::Refused(refused) => write_refused(&mut writer, refused),
            Self::Report(account) => write_account(&mut writer, account),
            Self::Stale | Self::Ready | Self::Sockets | Self::Processes => {}
            Self::Exit(ended) => {
                let cpu = u64::try_from(ended.cpu.as_nanos()).unwrap_or(u64::MAX);
                writer.u32(ended.status.cast_unsigned()).u64(cpu).u64(ended.peak_memory);
            }
        }
        writer.finish().map_err(io::Error::other)
    }

    pub(crate) fn read(kind: u8, body: &[u8]) -> io::Result<Self> {
        let mut reader = FrameReader::new(body);
        let word = match kind {
            STARTED => layers(&mut reader).map(Self::Started),
            SEALED => layers(&mut reader).map(Self::Sealed),
            TOO_WEAK => texts(&mut reader).map(Self::TooWeak),
            FAILED => reader.text(MOST_TEXT).map(|why| Self::Failed(why.to_owned())),
            REFUSED => read_refused(&mut reader).map(Self::Refused),
            REPORT => read_account(&mut reader).map(Self::Report),
            STALE => Ok(Self::Stale),
            READY => Ok(Self::Ready),
            SOCKETS => Ok(Self::Sockets),
            PROCESSES => Ok(Self::Processes),
            EXIT => exit(&mut reader).map(Self::Exit),
            other => Err(WireError::UnknownKind(other)),
        };
        let word = word.map_err(io::Error::other)?;
        reader.end().map_err(io::Error::other)?;
        Ok(word)
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Started(_) => STARTED,
            Self::TooWeak(_) => TOO_WEAK,
            Self::Failed(_) => FAILED,
            Self::Refused(_) => REFUSED,
            Self::Report(_) => REPORT,
            Self::Stale => STALE,
            Self::Ready => READY,
            Self::Sockets => SOCKETS,
            Self::Processes => PROCESSES,
            Self::Sealed(_) => SEALED,
            Self::Exit(_) => EXIT,
        }
    }
}

fn write_account(writer: &mut FrameWriter, account: &Account) {
    match &account.ending {
        Ending::Exited(code) => writer.u8(0).u32(u32::from(*code)),
        Ending::Signalled(signal) => writer.u8(1).u32(signal.cast_unsigned()),
        Ending::TimedOut => writer.u8(2),
        Ending::OutputTooLarge => writer.u8(3),
        Ending::OutOfMemory => writer.u8(4),
        Ending::JailFailed(why) => writer.u8(5).text(why),
    };
    for span in [account.usage.elapsed, account.usage.cpu] {
        writer.u64(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    }
    writer.u64(account.usage.peak_memory).u64(account.refused.beyond).u64(account.refused.paths_beyond);
    writer.u32(u32::try_from(account.refused.kept.len()).unwrap_or(u32::MAX));
    for refused in &account.refused.kept {
        write_refused(writer, refused);
    }
}

fn write_refused(writer: &mut FrameWriter, refused: &Refused) {
    match refused {
        Refused::Path { path, access } => {
            writer.u8(0).bytes(path.as_os_str().as_bytes()).u8(*access as u8);
        }
        Refused::Syscall { name, detail } => drop(writer.u8(1).text(name).text(detail)),
        Refused::Address { address } => drop(writer.u8(2).text(address)),
        Refused::LookUp => drop(writer.u8(3)),
    }
}

fn read_refused(reader: &mut FrameReader<'_>) -> Result<Refused, WireError> {
    Ok(match reader.u8()? {
        0 => Refused::Path { path: path(reader)?, access: attempt(reader.u8()?)? },
        1 => Refused::Syscall {
            name: reader.text(MOST_TEXT)?.to_owned(),
            detail: reader.text(MOST_TEXT)?.to_owned(),
        },
        2 => Refused::Address { address: reader.text(MOST_TEXT)?.to_owned() },
        3 => Refused::LookUp,
        other => return Err(WireError::UnknownValue(other)),
    })
}

fn read_account(reader: &mut FrameReader<'_>) -> Result<Account, WireError> {
    let ending = match reader.u8()? {
        0 => Ending::Exited(u8::try_from(reader.u32()?).map_err(|_| WireError::UnknownValue(0))?),
        1 => Ending::Signalled(reader.u32()?.cast_signed()),
        2 => Ending::TimedOut,
        3 => Ending::OutputTooLarge,
        4 => Ending::OutOfMemory,
        5 => Ending::JailFailed(reader.text(MOST_TEXT)?.to_owned()),
        other => return Err(WireError::UnknownValue(other)),
    };
    let elapsed = Duration::from_nanos(reader.u64()?);
    let cpu = Duration::from_nanos(reader.u64()?);
    let usage = CommandUsage { elapsed, cpu, peak_memory: reader.u64()? };
    let (beyond, paths_beyond) = (reader.u64()?, reader.u64()?);
    let mut kept = Vec::new();
    for _ in 0..reader.count(MOST_ITEMS, 1)? {
        kept.push(read_refused(reader)?);
    }
    Ok(Account { ending, usage, refused: Listed { kept, beyond, paths_beyond } })
}

fn setting(name: &OsStr, value: &OsStr) -> OsString {
    let mut setting = name.to_owned();
    setting.push("=");
    setting.push(value);
    setting
}

fn list<'a>(writer: &mut FrameWriter, items: impl ExactSizeIterator<Item = &'a OsStr>) {
    writer.u32(u32::try_from(items.len()).unwrap_or(u32::MAX));
    for item in items {
        writer.bytes(item.as_bytes());
    }
}

fn string(reader: &mut FrameReader<'_>) -> Result<CString, WireError> {
    CString::new(reader.bytes(MOST_TEXT)?).map_err(|_| WireError::UnknownValue(0))
}

fn strings(reader: &mut FrameReader<'_>) -> Result<Vec<CString>, WireError> {
    (0..reader.count(MOST_ITEMS, 4)?).map(|_| string(reader)).collect()
}

fn texts(reader: &mut FrameReader<'_>) -> Result<Vec<String>, WireError> {
    (0..reader.count(MOST_ITEMS, 4)?).map(|_| reader.text(MOST_TEXT).map(str::to_owned)).collect()
}

fn path(reader: &mut FrameReader<'_>) -> Result<PathBuf, WireError> {
    Ok(OsStr::from_bytes(reader.bytes(MOST_TEXT)?).into())
}

fn paths(reader: &mut FrameReader<'_>) -> Result<Vec<PathBuf>, WireError> {
    let paths = strings(reader)?.into_iter().map(|path| OsString::from_vec(path.into_bytes()).into());
    Ok(paths.collect())
}

fn layers(reader: &mut FrameReader<'_>) -> Result<LayerSet, WireError> {
    LayerSet::from_bits(JailKind::Command, reader.u64()?).ok_or(WireError::UnknownValue(u8::MAX))
}

fn exit(reader: &mut FrameReader<'_>) -> Result<ExitAccount, WireError> {
    let status = reader.u32()?.cast_signed();
    let cpu = Duration::from_nanos(reader.u64()?);
    Ok(ExitAccount { status, cpu, peak_memory: reader.u64()? })
}

fn access(number: u8) -> Result<Access, WireError> {
    let all = [Access::Read, Access::Execute, Access::Write];
    all.into_iter().find(|access| *access as u8 == number).ok_or(WireError::UnknownValue(number))
}

fn attempt(number: u8) -> Result<Attempt, WireError> {
    let all = [Attempt::Read, Attempt::Write, Attempt::Execute];
    all.into_iter().find(|attempt| *attempt as u8 == number).ok_or(WireError::UnknownValue(number))
}

const ORDER: u8 = 1;
const STARTED: u8 = 2;
const TOO_WEAK: u8 = 3;
const FAILED: u8 = 4;
const REPORT: u8 = 5;
const SOCKETS: u8 = 6;
const SEALED: u8 = 7;
const EXIT: u8 = 8;
const REFUSED: u8 = 9;
const PROCESSES: u8 = 10;
const READY: u8 = 11;
const STALE: u8 = 12;

const MOST_ITEMS: usize = 64 * 1024;
const MOST_TEXT: usize = 2 << 20;

#[cfg(test)]
mod tests;
