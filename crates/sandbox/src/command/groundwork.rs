//! The part of a jail that does not depend on one command, and can be created before the command is known.
//!
//! It names no tool, no caller and no path of the workspace. Commands with equal groundwork can use the same kind
//! of prepared jail, but never the same jail.

use std::io;

use super::{CommandJail, CommandLimits, Network, passing::Parcel};
use crate::{
    Namespaces,
    wire::{FrameReader, FrameWriter, WireError},
};

/// The input for namespaces and for the mounts that every command sees.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Groundwork {
    pub(crate) network: Network,
    pub(crate) limits: CommandLimits,
    pub(crate) tmp_bytes: u64,
    pub(crate) namespaces: Namespaces,
}

impl Groundwork {
    pub(crate) fn of(jail: &CommandJail) -> Self {
        Self {
            network: jail.network,
            limits: jail.limits,
            tmp_bytes: jail.view.tmp_bytes,
            namespaces: jail.namespaces,
        }
    }

    pub(crate) fn to_frame(self) -> io::Result<Vec<u8>> {
        let mut writer = FrameWriter::new(GROUNDWORK);
        self.write(&mut writer);
        writer.finish().map_err(io::Error::other)
    }

    pub(crate) fn read(parcel: &Parcel) -> io::Result<Self> {
        if parcel.kind != GROUNDWORK {
            return Err(io::Error::other(WireError::UnknownKind(parcel.kind)));
        }
        let mut reader = FrameReader::new(&parcel.body);
        let groundwork = Self::read_from(&mut reader).map_err(io::Error::other)?;
        reader.end().map_err(io::Error::other)?;
        Ok(groundwork)
    }

    pub(crate) fn write(self, writer: &mut FrameWriter) {
        match self.network {
            Network::None => writer.u32(0),
            Network::Proxied { http_port } => writer.u32(u32::from(http_port)),
        };
        let limits = self.limits;
        writer.u64(limits.memory_bytes).u64(limits.cpu_seconds).u64(limits.processes);
        writer.u64(limits.open_files).u64(limits.file_bytes);
        writer.u64(self.tmp_bytes).u8(u8::from(self.namespaces == Namespaces::Enter));
    }

    pub(crate) fn read_from(reader: &mut FrameReader<'_>) -> Result<Self, WireError> {
        let network = match u16::try_from(reader.u32()?) {
            Ok(0) => Network::None,
            Ok(http_port) => Network::Proxied { http_port },
            Err(_) => return Err(WireError::UnknownValue(u8::MAX)),
        };
        let limits = CommandLimits {
            memory_bytes: reader.u64()?,
            cpu_seconds: reader.u64()?,
            processes: reader.u64()?,
            open_files: reader.u64()?,
            file_bytes: reader.u64()?,
        };
        let tmp_bytes = reader.u64()?;
        let namespaces = if reader.u8()? == 1 { Namespaces::Enter } else { Namespaces::DangerouslySkip };
        Ok(Self { network, limits, tmp_bytes, namespaces })
    }
}

/// Above the kinds in `encode.rs`.
const GROUNDWORK: u8 = 32;
