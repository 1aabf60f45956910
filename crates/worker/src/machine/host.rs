//! Host functions of the guest: three functions and the clock. Every other import traps.

use std::{
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use toolgate_engine::Op;
use toolgate_sandbox::wire::{Helper, ScriptEnding};
use wasmtime::{Caller, Extern, Linker, Memory, Result};

use super::call::{CallState, CallStop, text_of};
use crate::{
    effects,
    helpers::{self, HelperAnswer, HelperError},
};

pub fn define(linker: &mut Linker<CallState>) -> Result<()> {
    linker.func_wrap("toolgate", "call", call)?;
    linker.func_wrap("toolgate", "take", take)?;
    linker.func_wrap("wasi_snapshot_preview1", "clock_time_get", clock)?;
    Ok(())
}

/// Answers one question. The response is kept in `pending`; its kind and length are returned.
fn call(
    mut caller: Caller<'_, CallState>,
    op: i32,
    text: u32,
    text_len: u32,
    bytes: u32,
    bytes_len: u32,
) -> Result<u64> {
    let Some(op) = Op::from_number(op) else { wasmtime::bail!("unknown host function {op}") };
    if let Some(helper) = helper(op) {
        caller.data_mut().note_helper(helper);
    }
    caller.data_mut().count_question((text_len as usize).saturating_add(bytes_len as usize))?;
    let text = text_of(read(&mut caller, text, text_len)?);
    let bytes = read(&mut caller, bytes, bytes_len)?;
    charge_fuel(&mut caller, helpers::charge(op, &text, &bytes))?;
    let answer = match op {
        Op::Console => {
            let mut line = text;
            let level = if line.is_empty() { 'l' } else { line.remove(0) };
            caller.data_mut().log(u8::try_from(level).unwrap_or(b'l'), line);
            Ok(HelperAnswer::Nothing)
        }
        Op::Sleep => {
            let wanted: u64 = text.parse().unwrap_or(0);
            let left = caller.data().time_left();
            thread::sleep(Duration::from_millis(wanted.min(left)));
            if wanted > left {
                return Err(CallStop(ScriptEnding::Timeout).into());
            }
            Ok(HelperAnswer::Nothing)
        }
        Op::Fetch | Op::FetchedText | Op::FetchedBytes | Op::Files => {
            effects::ask(caller.data_mut(), op, &text, bytes)?
        }
        _ => helpers::answer(op, &text, &bytes, caller.data().memory_left())
            .unwrap_or_else(|| Err(HelperError::runtime("host", "unknown", "unknown function"))),
    };
    let (kind, answer) = match answer {
        Ok(HelperAnswer::Nothing) => (0, Vec::new()),
        Ok(HelperAnswer::Text(text)) => (1, text.into_bytes()),
        Ok(HelperAnswer::Json(text)) => (2, text.into_bytes()),
        Ok(HelperAnswer::Bytes(bytes)) => (3, bytes),
        Err(error) => (4, error.to_json().into_bytes()),
    };
    let length = u32::try_from(answer.len())?;
    charge_fuel(&mut caller, u64::from(length).saturating_mul(2))?;
    caller.data_mut().hold(answer)?;
    Ok(u64::from(length) | kind << 32)
}

/// Records which helpers a call used. The gateway records its own.
const fn helper(op: Op) -> Option<Helper> {
    match op {
        Op::Console => Some(Helper::Console),
        Op::Sleep => Some(Helper::Timers),
        Op::Utf8Encode | Op::Decode | Op::EncodingName => Some(Helper::Encoding),
        Op::UrlParse | Op::UrlSet => Some(Helper::Url),
        Op::Random
        | Op::Digest
        | Op::HmacSign
        | Op::HmacVerify
        | Op::AesGcmEncrypt
        | Op::AesGcmDecrypt
        | Op::Hkdf
        | Op::Pbkdf2 => Some(Helper::Crypto),
        Op::ZonedTime | Op::ZoneName | Op::Collate | Op::Collator | Op::Segment | Op::DisplayName => {
            Some(Helper::Intl)
        }
        Op::ParseHtml => Some(Helper::Html),
        Op::ParseXml => Some(Helper::Xml),
        Op::ParseCsv => Some(Helper::Csv),
        Op::ParseYaml => Some(Helper::Yaml),
        Op::Fetch | Op::FetchedText | Op::FetchedBytes | Op::Files => None,
    }
}

fn take(mut caller: Caller<'_, CallState>, into: u32) -> Result<()> {
    let answer = caller.data_mut().take_pending();
    let memory = memory(&mut caller)?;
    memory.write(&mut caller, into as usize, &answer)?;
    Ok(())
}

/// Millisecond resolution only: enough for dates, too coarse for cache-timing attacks.
fn clock(mut caller: Caller<'_, CallState>, clock: i32, _precision: i64, into: u32) -> Result<i32> {
    const REALTIME: i32 = 0;
    let since = if clock == REALTIME {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    } else {
        // Monotonic time counts from the start of the call, which hides the uptime of host and worker.
        caller.data().elapsed()
    };
    let nanoseconds = u64::try_from(since.as_millis()).unwrap_or(u64::MAX).saturating_mul(1_000_000);
    let memory = memory(&mut caller)?;
    memory.write(&mut caller, into as usize, &nanoseconds.to_le_bytes())?;
    Ok(0)
}

/// Charges fuel for native work as for the engine's own.
fn charge_fuel(caller: &mut Caller<'_, CallState>, cost: u64) -> Result<()> {
    let left = caller.get_fuel()?;
    if let Some(left) = left.checked_sub(cost) {
        return caller.set_fuel(left);
    }
    caller.set_fuel(0)?;
    Err(CallStop(ScriptEnding::Statements).into())
}

fn read(caller: &mut Caller<'_, CallState>, from: u32, len: u32) -> Result<Vec<u8>> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let memory = memory(caller)?;
    let range = from as usize..(from as usize).saturating_add(len as usize);
    match memory.data(&caller).get(range) {
        Some(bytes) => Ok(bytes.to_vec()),
        None => wasmtime::bail!("the engine pointed outside its memory"),
    }
}

fn memory(caller: &mut Caller<'_, CallState>) -> Result<Memory> {
    match caller.get_export("memory") {
        Some(Extern::Memory(memory)) => Ok(memory),
        _ => wasmtime::bail!("the engine exports no memory"),
    }
}
