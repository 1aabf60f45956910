//! Turns effect requests of JavaScript into frames. Their JSON is parsed here, inside the sandbox; the gateway receives
//! typed fields.

use serde::Deserialize;
use serde_json::json;
use toolgate_engine::Op;
use toolgate_sandbox::wire::{Effect, EffectAnswer, FetchAnswer, FetchCall, FileCall, Redirect};

use crate::{
    helpers::{ErrorClass, HelperAnswer, HelperError},
    machine::CallState,
};

/// Answers the ops that the gateway decides.
pub fn ask(
    call: &mut CallState,
    op: Op,
    text: &str,
    bytes: Vec<u8>,
) -> wasmtime::Result<Result<HelperAnswer, HelperError>> {
    let size = text.len().saturating_add(bytes.len());
    let effect = match op {
        Op::FetchedText | Op::FetchedBytes => return Ok(fetched(call, op, text)),
        Op::Fetch => fetch_call(text, bytes).map(Effect::Fetch),
        _ => file_call(text).map(Effect::File),
    };
    let effect = match effect {
        Ok(effect) => effect,
        Err(error) => return Ok(Err(error)),
    };
    if !effect.fits() {
        let message = "a part of the request is larger than the gateway accepts; send less";
        return Ok(Err(HelperError::invalid("host", "request-too-large", message)));
    }
    let Some(answer) = call.ask(effect, size)? else {
        let message = "effects are not available while a tool is loaded; use them in the function that runs";
        return Ok(Err(HelperError::new(ErrorClass::Security, "host", "not-running", message)));
    };
    Ok(match answer {
        EffectAnswer::Json(answer) => Ok(HelperAnswer::Json(answer.text)),
        EffectAnswer::Fetched(answer) => Ok(HelperAnswer::Json(keep(call, answer)?)),
        EffectAnswer::Refused(error) => Err(HelperError {
            class: match error.kind.as_str() {
                "INVALID_INPUT" => ErrorClass::InvalidInput,
                "SECURITY" => ErrorClass::Security,
                _ => ErrorClass::HelperRuntime,
            },
            helper: error.helper,
            reason: error.reason,
            message: error.message,
        }),
    })
}

/// Keeps the body here until the tool reads it as text or bytes.
fn keep(call: &mut CallState, answer: FetchAnswer) -> wasmtime::Result<String> {
    let length = answer.body.len();
    let id = call.keep_body(answer.body)?;
    let meta = json!({
        "id": id,
        "status": answer.status,
        "url": answer.url,
        "redirected": answer.redirected,
        "headers": answer.headers,
        "length": length,
        "fullLength": answer.full_length,
    });
    Ok(meta.to_string())
}

fn fetched(call: &CallState, op: Op, id: &str) -> Result<HelperAnswer, HelperError> {
    let body = id.parse().ok().and_then(|id: usize| call.body(id));
    let Some(body) = body else {
        return Err(HelperError::invalid("fetch", "no-such-body", "unknown body id"));
    };
    Ok(if op == Op::FetchedText {
        let mut text = String::from_utf8_lossy(body).into_owned();
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len_utf8());
        }
        HelperAnswer::Text(text)
    } else {
        HelperAnswer::Bytes(body.to_vec())
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FetchParameters {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    has_body: bool,
    redirect: String,
    timeout_ms: u32,
    start_index: u64,
    max_length: u64,
}

fn fetch_call(text: &str, body: Vec<u8>) -> Result<FetchCall, HelperError> {
    let parameters: FetchParameters = serde_json::from_str(text)
        .map_err(|error| HelperError::invalid("fetch", "invalid-request", error.to_string()))?;
    let redirect = match parameters.redirect.as_str() {
        "follow" => Redirect::Follow,
        "error" => Redirect::Error,
        "manual" => Redirect::Manual,
        other => {
            let message = format!("unknown `redirect` value `{other}`; use follow, error or manual");
            return Err(HelperError::invalid("fetch", "invalid-request", message));
        }
    };
    Ok(FetchCall {
        method: parameters.method,
        url: parameters.url,
        headers: parameters.headers,
        body: parameters.has_body.then_some(body),
        redirect,
        timeout_ms: parameters.timeout_ms,
        start_index: parameters.start_index,
        max_length: parameters.max_length,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileParameters {
    function: String,
    arguments: Vec<String>,
    options: Vec<(String, String)>,
}

fn file_call(text: &str) -> Result<FileCall, HelperError> {
    let parameters: FileParameters = serde_json::from_str(text)
        .map_err(|error| HelperError::invalid("safety.fs", "invalid-request", error.to_string()))?;
    Ok(FileCall {
        function: parameters.function,
        arguments: parameters.arguments,
        options: parameters.options,
    })
}

const BYTE_ORDER_MARK: char = '\u{feff}';
