//! `toolgate call` through a running gateway with the same configuration.
//!
//! The gateway listens on a Unix socket in its state directory, mode 0600. It checks the peer's user, and a key from a
//! file in the same directory. A sandboxed tool runs as the same user and may reach the socket, but cannot read the key.
//! One connection carries one call: a line of JSON each way.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    time::timeout,
};
use toolgate::Config;
use toolgate_gate::{
    Answer, ApprovalId, BrokenCall, ClientAnswer, FailedCall, Outcome, PendingCall, Reason, RefusedCall,
    ReleasedCall, Warning,
};

use crate::Failure;

/// A call as the command sends it.
#[derive(Debug, Deserialize, Serialize)]
pub struct LocalCall {
    pub key: String,
    /// A gateway for another configuration does not answer.
    pub config: PathBuf,
    pub tool: String,
    /// As typed, because only the gateway knows the tool's parameters.
    pub arguments: Vec<String>,
    /// The id of a question and the answer to it.
    pub answer: Option<(String, String)>,
}

/// The gateway's answer.
#[derive(Debug, Deserialize, Serialize)]
pub enum LocalAnswer {
    /// The gateway has another configuration; the command makes the call itself.
    NotMine,
    /// The arguments cannot be used.
    Unusable(String),
    /// The outcome, and notes for the operator.
    Ended(Value, Vec<String>),
}

/// Makes the call through the gateway. `None` if none runs for this configuration.
pub async fn call(
    config: &Config,
    tool: &str,
    arguments: &[String],
    answer: Option<&ClientAnswer>,
) -> Result<Option<(Outcome, Vec<String>)>, Failure> {
    let (Some(file), Ok(mut stream)) = (config_file(config), UnixStream::connect(socket(config)).await)
    else {
        return Ok(None);
    };
    // A socket of another user is not the gateway's.
    if !is_own_user(&stream) {
        return Ok(None);
    }
    let request = LocalCall {
        key: key(config)?,
        config: file,
        tool: tool.to_owned(),
        arguments: arguments.to_vec(),
        answer: answer
            .map(|given| (given.approval.as_str().to_owned(), answer_name(given.answer).to_owned())),
    };
    let lost = |error: io::Error| {
        Failure::new(format!(
            "the running gateway closed the connection: {error}; see the journal for the call's outcome"
        ))
    };
    send(&mut stream, &request).await.map_err(lost)?;
    let line = receive(&mut stream, MOST_ANSWER).await.map_err(lost)?;
    let unreadable = || Failure::new("the running gateway sent an invalid answer; is it another version?");
    match serde_json::from_slice(&line).map_err(|_| unreadable())? {
        LocalAnswer::NotMine => Ok(None),
        LocalAnswer::Unusable(why) => Err(Failure::new(why)),
        LocalAnswer::Ended(outcome, notes) => Ok(Some((from_wire(&outcome).ok_or_else(unreadable)?, notes))),
    }
}

pub fn socket(config: &Config) -> PathBuf {
    config.state.join("call.sock")
}

/// The configuration file with symlinks resolved.
pub fn config_file(config: &Config) -> Option<PathBuf> {
    fs::canonicalize(config.file.as_ref()?).ok()
}

/// Proves that the peer can read the state directory.
pub fn key(config: &Config) -> Result<String, Failure> {
    let key = toolgate_store::secret_bytes(&config.state.join("keys"), "local-call")
        .map_err(|error| Failure::new(error.to_string()))?;
    let hex = |text: String, byte: &u8| text + &format!("{byte:02x}");
    Ok(key.iter().fold(String::new(), hex))
}

pub fn is_own_user(stream: &UnixStream) -> bool {
    let own = fs::metadata(Path::new("/proc/self")).map(|own| own.uid());
    matches!((own, stream.peer_cred()), (Ok(own), Ok(peer)) if peer.uid() == own)
}

pub async fn send(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

/// Reads one line of at most `most` bytes.
pub async fn receive(stream: &mut UnixStream, most: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut reader = BufReader::new(stream.take(most));
    tokio::io::AsyncBufReadExt::read_until(&mut reader, b'\n', &mut line).await?;
    if line.pop() == Some(b'\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Reads the request of a peer that was accepted.
pub async fn receive_call(stream: &mut UnixStream, most: u64) -> Option<LocalCall> {
    let line = timeout(REQUEST_TIME, receive(stream, most)).await.ok()?.ok()?;
    serde_json::from_slice(&line).ok()
}

const fn answer_name(answer: Answer) -> &'static str {
    match answer {
        Answer::Accept => "accept",
        Answer::Decline => "decline",
        Answer::Cancel => "cancel",
        Answer::Lost => "lost",
    }
}

/// `None` if the text is not a valid answer.
pub fn answer_from((id, name): &(String, String)) -> Option<ClientAnswer> {
    let all = [Answer::Accept, Answer::Decline, Answer::Cancel, Answer::Lost];
    let answer = all.into_iter().find(|known| answer_name(*known) == name)?;
    Some(ClientAnswer { approval: ApprovalId::parse(id)?, answer, answered_after: None })
}

pub fn to_wire(outcome: &Outcome) -> Value {
    let reason = outcome.reason().map(Reason::code);
    let end = match outcome {
        Outcome::Released(end) => {
            let warning = |warning: &Warning| json!([warning.code, warning.message]);
            let warnings: Vec<Value> = end.warnings.iter().map(warning).collect();
            json!({ "released": { "value": end.value, "structured": end.is_structured, "warnings": warnings } })
        }
        Outcome::Pending(end) => {
            let expires = end.expires.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            json!({ "pending": {
                "approval": end.approval.as_str(), "prompt": end.prompt, "expires": expires,
                "clientMayAnswer": end.client_may_answer, "toCaller": end.to_caller,
            } })
        }
        Outcome::Refused(end) => {
            json!({ "refused": { "toCaller": end.to_caller, "toOperator": end.to_operator, "remedy": end.remedy } })
        }
        Outcome::Failed(end) => {
            json!({ "failed": { "toCaller": end.to_caller, "toOperator": end.to_operator, "remedy": end.remedy } })
        }
        Outcome::Broken(end) => json!({ "broken": { "toOperator": end.to_operator } }),
    };
    json!({ "callId": outcome.call_id(), "reason": reason, "end": end })
}

fn from_wire(wire: &Value) -> Option<Outcome> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let call_id = text(wire, "callId")?;
    let reason =
        text(wire, "reason").and_then(|code| Reason::ALL.iter().find(|known| known.code() == code).copied());
    let (kind, end) = wire.get("end")?.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "released" => Outcome::Released(ReleasedCall {
            call_id,
            value: end.get("value")?.clone(),
            is_structured: end.get("structured")?.as_bool()?,
            warnings: end.get("warnings")?.as_array()?.iter().filter_map(warning).collect(),
        }),
        "pending" => Outcome::Pending(PendingCall {
            call_id,
            approval: ApprovalId::parse(&text(end, "approval")?)?,
            prompt: text(end, "prompt")?,
            expires: SystemTime::UNIX_EPOCH
                + serde_json::from_value::<Duration>(end.get("expires")?.clone()).ok()?,
            client_may_answer: end.get("clientMayAnswer")?.as_bool()?,
            to_caller: text(end, "toCaller")?,
        }),
        "refused" => Outcome::Refused(RefusedCall {
            call_id,
            reason: reason?,
            to_caller: text(end, "toCaller")?,
            to_operator: text(end, "toOperator")?,
            remedy: text(end, "remedy"),
        }),
        "failed" => Outcome::Failed(FailedCall {
            call_id,
            reason: reason?,
            to_caller: text(end, "toCaller")?,
            to_operator: text(end, "toOperator")?,
            remedy: text(end, "remedy"),
        }),
        "broken" => {
            Outcome::Broken(BrokenCall { call_id, reason: reason?, to_operator: text(end, "toOperator")? })
        }
        _ => return None,
    })
}

fn warning(wire: &Value) -> Option<Warning> {
    let (code, message) = (wire.get(0)?.as_str()?, wire.get(1)?.as_str()?.to_owned());
    let code = WARNINGS.into_iter().find(|known| *known == code)?;
    Some(Warning { code, message })
}

/// See `Warning`.
const WARNINGS: [&str; 3] = ["secret.probable", "secret.possible", "output.unstructured"];
/// Larger than any tool result.
const MOST_ANSWER: u64 = 256 << 20;
const REQUEST_TIME: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_survive_a_round_trip() {
        let id = || "01a".to_owned();
        let outcomes = [
            Outcome::Released(ReleasedCall {
                call_id: id(),
                value: json!({ "a": [1, null] }),
                is_structured: true,
                warnings: WARNINGS.map(|code| Warning { code, message: "m".to_owned() }).to_vec(),
            }),
            Outcome::Pending(PendingCall {
                call_id: id(),
                approval: ApprovalId::from_random([7; 16]),
                prompt: "run it?\nall of it".to_owned(),
                expires: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
                client_may_answer: true,
                to_caller: "wait".to_owned(),
            }),
            Outcome::Refused(RefusedCall {
                call_id: id(),
                reason: Reason::Busy,
                to_caller: "no".to_owned(),
                to_operator: "because".to_owned(),
                remedy: Some("wait".to_owned()),
            }),
            Outcome::Failed(FailedCall {
                call_id: id(),
                reason: Reason::ToolFailed,
                to_caller: "thrown".to_owned(),
                to_operator: "thrown".to_owned(),
                remedy: None,
            }),
            Outcome::Broken(BrokenCall {
                call_id: id(),
                reason: Reason::Panicked,
                to_operator: "panic".to_owned(),
            }),
        ];
        for outcome in outcomes {
            let wire = serde_json::to_string(&to_wire(&outcome)).unwrap();
            let back = from_wire(&serde_json::from_str(&wire).unwrap()).unwrap();
            assert_eq!(format!("{back:?}"), format!("{outcome:?}"));
        }
    }
}
