//! Requests of a worker to the gateway, as typed fields. The gateway checks them against the call's grants.

use super::{FrameReader, FrameWriter, WireError};

/// One request to the gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    Fetch(FetchCall),
    File(FileCall),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FetchCall {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    pub redirect: Redirect,
    /// Milliseconds, from `AbortSignal.timeout`; zero for none.
    pub timeout_ms: u32,
    /// Bytes of the response body to skip, and the maximum to return (zero for all).
    pub start_index: u64,
    pub max_length: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Redirect {
    Follow,
    Error,
    Manual,
}

/// A file function by name, its arguments as text and its options as pairs. The gateway validates the names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileCall {
    pub function: String,
    pub arguments: Vec<String>,
    pub options: Vec<(String, String)>,
}

/// The gateway's response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EffectAnswer {
    Fetched(FetchAnswer),
    Json(JsonAnswer),
    Refused(EffectError),
}

/// JSON text produced by the gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JsonAnswer {
    pub text: String,
    /// Bytes read or written for it, in addition to those that the tool sent.
    pub moved: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FetchAnswer {
    pub status: u16,
    pub url: String,
    pub redirected: bool,
    pub headers: Vec<(String, String)>,
    /// Length of the whole body; `body` may be a part of it.
    pub full_length: u64,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EffectError {
    /// `INVALID_INPUT`, `HELPER_RUNTIME` or `SECURITY`.
    pub kind: String,
    pub helper: String,
    pub reason: String,
    pub message: String,
    /// Bytes fetched, read or written before it failed.
    pub moved: u64,
}

/// Reason code of a response that is not a refusal: the call's time ran out meanwhile.
pub const OUT_OF_TIME: &str = "interrupted";

impl Effect {
    /// Whether the other end accepts this. The gateway would take anything longer for a compromised worker.
    pub fn fits(&self) -> bool {
        let pairs = |pairs: &[(String, String)]| {
            pairs.len() <= MAX_PAIRS
                && pairs.iter().all(|(name, value)| name.len().max(value.len()) <= MAX_HEADER)
        };
        let whole = self.payload().saturating_add(FRAMING) <= super::MAX_FRAME;
        whole
            && match self {
                Self::Fetch(call) => {
                    call.method.len() <= MAX_NAME
                        && call.url.len() <= MAX_URL
                        && pairs(&call.headers)
                        && call.body.as_ref().is_none_or(|body| body.len() <= MAX_CONTENT)
                }
                Self::File(call) => {
                    call.function.len() <= MAX_NAME
                        && call.arguments.len() <= MAX_ARGUMENTS
                        && call.arguments.iter().map(String::len).sum::<usize>() <= MAX_CONTENT
                        && pairs(&call.options)
                }
            }
    }

    /// Bytes that the tool sends with it. The worker counts the JSON form, which is never shorter.
    pub fn payload(&self) -> usize {
        match self {
            Self::Fetch(call) => {
                let body = call.body.as_ref().map_or(0, Vec::len);
                call.method.len() + call.url.len() + pairs_length(&call.headers) + body
            }
            Self::File(call) => {
                let arguments: usize = call.arguments.iter().map(String::len).sum();
                call.function.len() + arguments + pairs_length(&call.options)
            }
        }
    }

    pub(super) fn write(&self, writer: &mut FrameWriter) {
        match self {
            Self::Fetch(call) => {
                writer.u8(0).text_within(&call.method, MAX_NAME).text_within(&call.url, MAX_URL);
                write_pairs(writer, &call.headers);
                match &call.body {
                    None => writer.u8(0),
                    Some(body) => writer.u8(1).bytes_within(body, MAX_CONTENT),
                };
                writer
                    .u8(call.redirect as u8)
                    .u32(call.timeout_ms)
                    .u64(call.start_index)
                    .u64(call.max_length);
            }
            Self::File(call) => {
                writer.u8(1).text_within(&call.function, MAX_NAME);
                writer.count_within(call.arguments.len(), MAX_ARGUMENTS);
                for argument in &call.arguments {
                    writer.text_within(argument, MAX_CONTENT);
                }
                write_pairs(writer, &call.options);
            }
        }
    }

    pub(super) fn read(reader: &mut FrameReader<'_>) -> Result<Self, WireError> {
        match reader.u8()? {
            0 => Ok(Self::Fetch(FetchCall {
                method: reader.text(MAX_NAME)?.to_owned(),
                url: reader.text(MAX_URL)?.to_owned(),
                headers: read_pairs(reader)?,
                body: match reader.u8()? {
                    0 => None,
                    1 => Some(reader.bytes(MAX_CONTENT)?.to_vec()),
                    other => return Err(WireError::UnknownValue(other)),
                },
                redirect: match reader.u8()? {
                    0 => Redirect::Follow,
                    1 => Redirect::Error,
                    2 => Redirect::Manual,
                    other => return Err(WireError::UnknownValue(other)),
                },
                timeout_ms: reader.u32()?,
                start_index: reader.u64()?,
                max_length: reader.u64()?,
            })),
            1 => {
                let function = reader.text(MAX_NAME)?.to_owned();
                let count = reader.count(MAX_ARGUMENTS, 4)?;
                let arguments = (0..count)
                    .map(|_| reader.text(MAX_CONTENT).map(str::to_owned))
                    .collect::<Result<_, _>>()?;
                Ok(Self::File(FileCall { function, arguments, options: read_pairs(reader)? }))
            }
            other => Err(WireError::UnknownValue(other)),
        }
    }
}

impl EffectAnswer {
    /// Bytes that both ends count against the call's limit: the larger of what the tool receives and what the
    /// gateway moved. For one byte of a large body, the gateway fetches all of it.
    pub fn payload(&self) -> u64 {
        match self {
            Self::Fetched(answer) => {
                let head = answer.url.len() + pairs_length(&answer.headers);
                answer.full_length.max(answer.body.len() as u64).saturating_add(head as u64)
            }
            Self::Json(answer) => answer.moved.max(answer.text.len() as u64),
            Self::Refused(error) => {
                let text = error.helper.len() + error.reason.len() + error.message.len();
                error.moved.saturating_add(text as u64)
            }
        }
    }

    pub(super) fn write(&self, writer: &mut FrameWriter) {
        match self {
            Self::Fetched(answer) => {
                writer.u8(0).u32(u32::from(answer.status)).text_within(&answer.url, MAX_URL);
                writer.u8(u8::from(answer.redirected));
                write_pairs(writer, &answer.headers);
                writer.u64(answer.full_length).bytes(&answer.body);
            }
            Self::Json(answer) => {
                writer.u8(1).text(&answer.text).u64(answer.moved);
            }
            Self::Refused(error) => {
                writer.u8(2).text_within(&error.kind, MAX_NAME).text_within(&error.helper, MAX_NAME);
                writer.text_within(&error.reason, MAX_NAME).text_within(&error.message, MAX_HEADER);
                writer.u64(error.moved);
            }
        }
    }

    pub(super) fn read(reader: &mut FrameReader<'_>) -> Result<Self, WireError> {
        match reader.u8()? {
            0 => Ok(Self::Fetched(FetchAnswer {
                status: u16::try_from(reader.u32()?).map_err(|_| WireError::UnknownValue(0))?,
                url: reader.text(MAX_URL)?.to_owned(),
                redirected: reader.u8()? != 0,
                headers: read_pairs(reader)?,
                full_length: reader.u64()?,
                body: reader.bytes(super::MAX_FRAME)?.to_vec(),
            })),
            1 => Ok(Self::Json(JsonAnswer {
                text: reader.text(super::MAX_FRAME)?.to_owned(),
                moved: reader.u64()?,
            })),
            2 => Ok(Self::Refused(EffectError {
                kind: reader.text(MAX_NAME)?.to_owned(),
                helper: reader.text(MAX_NAME)?.to_owned(),
                reason: reader.text(MAX_NAME)?.to_owned(),
                message: reader.text(MAX_HEADER)?.to_owned(),
                moved: reader.u64()?,
            })),
            other => Err(WireError::UnknownValue(other)),
        }
    }
}

fn pairs_length(pairs: &[(String, String)]) -> usize {
    pairs.iter().map(|(name, value)| name.len() + value.len()).sum()
}

fn write_pairs(writer: &mut FrameWriter, pairs: &[(String, String)]) {
    writer.count_within(pairs.len(), MAX_PAIRS);
    for (name, value) in pairs {
        writer.text_within(name, MAX_HEADER).text_within(value, MAX_HEADER);
    }
}

fn read_pairs(reader: &mut FrameReader<'_>) -> Result<Vec<(String, String)>, WireError> {
    let count = reader.count(MAX_PAIRS, 8)?;
    let mut text = || reader.text(MAX_HEADER).map(str::to_owned);
    (0..count).map(|_| Ok((text()?, text()?))).collect()
}

const MAX_NAME: usize = 200;
const MAX_URL: usize = 64 << 10;
const MAX_HEADER: usize = 64 << 10;
const MAX_PAIRS: usize = 1_000;
const MAX_ARGUMENTS: usize = 16;
const MAX_CONTENT: usize = 32 << 20;
/// Upper bound for the parts of a frame that are not payload: eight bytes for each pair, four for each argument,
/// and single numbers.
const FRAMING: usize = 8 * MAX_PAIRS + 4 * MAX_ARGUMENTS + 64;
