//! The frames of both directions.

use super::{Effect, EffectAnswer, FrameReader, FrameWriter, WireError};

/// From the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum ToWorker {
    Start(StartWorker),
    /// A tool's code, sent when the worker reports that it is missing.
    Load(Load),
    Run(RunScript),
    Answer(EffectAnswer),
}

/// Sent once, before the worker jails itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StartWorker {
    pub cpu_seconds: u64,
    /// Whether the worker may enter namespaces. False only in tests of the other protections.
    pub namespaces: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Load {
    /// Identifies source, names and grants together.
    pub key: [u8; 32],
    /// Host features that the tool may use, one bit each.
    pub grants: u32,
    /// A JSON array of the parameter names, in order.
    pub names: String,
    /// One function expression in parentheses.
    pub source: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunScript {
    pub key: [u8; 32],
    pub limits: RunLimits,
    pub seed: u64,
    /// A JSON object; a missing name is `undefined`.
    pub arguments: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RunLimits {
    pub timeout_ms: u32,
    pub fuel: u64,
    pub memory_bytes: u64,
    pub console_lines: u32,
    pub console_bytes: u32,
    pub result_bytes: u32,
    pub host_calls: u32,
    pub host_bytes: u64,
}

/// From the worker, so none of it can be trusted.
#[derive(Clone, Debug, PartialEq)]
pub enum FromWorker {
    /// The worker is jailed and waits; the bits encode its layers.
    Ready {
        strength: u64,
    },
    /// The worker does not have the tool that `Run` named.
    Missing,
    /// The tool's code does not load; nothing ran.
    Unloadable(ScriptEnding),
    Effect(Effect),
    Done(Box<Done>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    pub ending: ScriptEnding,
    pub console: Vec<(u8, String)>,
    pub console_dropped: u32,
    pub usage: ScriptUsage,
}

/// Outcome of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ScriptEnding {
    /// JSON text.
    Value(String),
    Undefined,
    /// JSON text of what was thrown: name, message, stack, and for helpers kind, helper and reason.
    Threw(String),
    /// The returned value is not plain data; the reason is encoded like `Threw`.
    NotData(String),
    /// The promise can never settle.
    Unsettled,
    /// The code is not valid JavaScript; the reason is encoded like `Threw`.
    Invalid(String),
    /// The body closes the function it is wrapped in.
    Escaped,
    Statements,
    Timeout,
    Memory,
    Stack,
    ResultTooLarge,
    HostCalls,
    HostBytes,
    /// The engine trapped, and no limit explains it.
    Trapped(String),
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ScriptUsage {
    pub fuel: u64,
    pub memory_bytes: u64,
    pub host_calls: u32,
    pub host_bytes: u64,
    pub elapsed_us: u64,
    /// The bits of each `Helper` that was used.
    pub helpers: u32,
}

impl Load {
    /// Whether the worker accepts this.
    pub fn fits(&self) -> bool {
        self.names.len() <= MAX_TEXT && self.source.len() <= MAX_TEXT
    }
}

impl ToWorker {
    /// Fails if the worker would reject the frame: each field has the limit that `decode` applies.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let mut writer = FrameWriter::new(match self {
            Self::Start(_) => 1,
            Self::Load(_) => 2,
            Self::Run(_) => 3,
            Self::Answer(_) => 4,
        });
        match self {
            Self::Start(start) => {
                writer.u64(start.cpu_seconds).u8(u8::from(start.namespaces));
            }
            Self::Load(load) => {
                writer.array(&load.key).u32(load.grants);
                writer.text_within(&load.names, MAX_TEXT).text_within(&load.source, MAX_TEXT);
            }
            Self::Run(run) => {
                let limits = &run.limits;
                writer.array(&run.key).u32(limits.timeout_ms).u64(limits.fuel).u64(limits.memory_bytes);
                writer.u32(limits.console_lines).u32(limits.console_bytes).u32(limits.result_bytes);
                writer.u32(limits.host_calls).u64(limits.host_bytes).u64(run.seed).text(&run.arguments);
            }
            Self::Answer(answer) => answer.write(&mut writer),
        }
        writer.finish()
    }

    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut reader = FrameReader::new(body);
        let frame = match kind {
            1 => Self::Start(StartWorker { cpu_seconds: reader.u64()?, namespaces: reader.u8()? != 0 }),
            2 => Self::Load(Load {
                key: reader.array()?,
                grants: reader.u32()?,
                names: reader.text(MAX_TEXT)?.to_owned(),
                source: reader.text(MAX_TEXT)?.to_owned(),
            }),
            3 => Self::Run(RunScript {
                key: reader.array()?,
                limits: RunLimits {
                    timeout_ms: reader.u32()?,
                    fuel: reader.u64()?,
                    memory_bytes: reader.u64()?,
                    console_lines: reader.u32()?,
                    console_bytes: reader.u32()?,
                    result_bytes: reader.u32()?,
                    host_calls: reader.u32()?,
                    host_bytes: reader.u64()?,
                },
                seed: reader.u64()?,
                arguments: reader.text(super::MAX_FRAME)?.to_owned(),
            }),
            4 => Self::Answer(EffectAnswer::read(&mut reader)?),
            other => return Err(WireError::UnknownKind(other)),
        };
        reader.end()?;
        Ok(frame)
    }
}

impl FromWorker {
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let mut writer = FrameWriter::new(match self {
            Self::Ready { .. } => 1,
            Self::Missing => 2,
            Self::Unloadable(_) => 3,
            Self::Effect(_) => 4,
            Self::Done(_) => 5,
        });
        match self {
            Self::Ready { strength } => {
                writer.u64(*strength);
            }
            Self::Missing => {}
            Self::Unloadable(ending) => ending.write(&mut writer),
            Self::Effect(effect) => effect.write(&mut writer),
            Self::Done(done) => done.write(&mut writer),
        }
        writer.finish()
    }

    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut reader = FrameReader::new(body);
        let frame = match kind {
            1 => Self::Ready { strength: reader.u64()? },
            2 => Self::Missing,
            3 => Self::Unloadable(ScriptEnding::read(&mut reader)?),
            4 => Self::Effect(Effect::read(&mut reader)?),
            5 => Self::Done(Box::new(Done::read(&mut reader)?)),
            other => return Err(WireError::UnknownKind(other)),
        };
        reader.end()?;
        Ok(frame)
    }
}

impl Done {
    fn write(&self, writer: &mut FrameWriter) {
        self.ending.write(writer);
        writer.count_within(self.console.len(), MAX_CONSOLE_LINES);
        for (level, line) in &self.console {
            writer.u8(*level).text_within(line, MAX_TEXT);
        }
        let usage = &self.usage;
        writer.u32(self.console_dropped).u64(usage.fuel).u64(usage.memory_bytes);
        writer.u32(usage.host_calls).u64(usage.host_bytes).u64(usage.elapsed_us).u32(usage.helpers);
    }

    fn read(reader: &mut FrameReader<'_>) -> Result<Self, WireError> {
        let ending = ScriptEnding::read(reader)?;
        let lines = reader.count(MAX_CONSOLE_LINES, 5)?;
        let console = (0..lines)
            .map(|_| Ok((reader.u8()?, reader.text(MAX_TEXT)?.to_owned())))
            .collect::<Result<_, WireError>>()?;
        Ok(Self {
            ending,
            console,
            console_dropped: reader.u32()?,
            usage: ScriptUsage {
                fuel: reader.u64()?,
                memory_bytes: reader.u64()?,
                host_calls: reader.u32()?,
                host_bytes: reader.u64()?,
                elapsed_us: reader.u64()?,
                helpers: reader.u32()?,
            },
        })
    }
}

impl ScriptEnding {
    fn write(&self, writer: &mut FrameWriter) {
        let (kind, text) = match self {
            Self::Value(text) => (0, text.as_str()),
            Self::Undefined => (1, ""),
            Self::Threw(text) => (2, text.as_str()),
            Self::NotData(text) => (3, text.as_str()),
            Self::Unsettled => (4, ""),
            Self::Escaped => (5, ""),
            Self::Statements => (6, ""),
            Self::Timeout => (7, ""),
            Self::Memory => (8, ""),
            Self::Stack => (9, ""),
            Self::ResultTooLarge => (10, ""),
            Self::HostCalls => (11, ""),
            Self::HostBytes => (12, ""),
            Self::Trapped(text) => (13, text.as_str()),
            Self::Invalid(text) => (14, text.as_str()),
        };
        writer.u8(kind).text(text);
    }

    fn read(reader: &mut FrameReader<'_>) -> Result<Self, WireError> {
        let kind = reader.u8()?;
        let text = reader.text(super::MAX_FRAME)?;
        let plain =
            |ending: Self| if text.is_empty() { Ok(ending) } else { Err(WireError::Leftover(text.len())) };
        match kind {
            0 => Ok(Self::Value(text.to_owned())),
            1 => plain(Self::Undefined),
            2 => Ok(Self::Threw(text.to_owned())),
            3 => Ok(Self::NotData(text.to_owned())),
            4 => plain(Self::Unsettled),
            5 => plain(Self::Escaped),
            6 => plain(Self::Statements),
            7 => plain(Self::Timeout),
            8 => plain(Self::Memory),
            9 => plain(Self::Stack),
            10 => plain(Self::ResultTooLarge),
            11 => plain(Self::HostCalls),
            12 => plain(Self::HostBytes),
            13 => Ok(Self::Trapped(text.to_owned())),
            14 => Ok(Self::Invalid(text.to_owned())),
            other => Err(WireError::UnknownValue(other)),
        }
    }
}

const MAX_TEXT: usize = 4 << 20;
const MAX_CONSOLE_LINES: usize = 10_000;
