//! Descriptions of thrown errors: readable, and never longer than the gateway accepts.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails loudly")]

use std::sync::{LazyLock, Mutex};

use toolgate_sandbox::wire::{
    Effect, EffectAnswer, EffectError, Load, MAX_ERROR, RunLimits, RunScript, ScriptEnding,
};
use toolgate_worker::{EffectPort, LinkLost, ScriptMachine};

/// A lone surrogate is not valid outside JavaScript, and must not cause the loss of a message.
#[test]
fn lone_surrogates_in_an_error_are_replaced() {
    let text = thrown("throw new Error('a\\ud800b')");
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["message"], "a\u{fffd}b");
}

#[test]
fn gateway_accepts_the_largest_error_description() {
    // Six bytes per character in JSON, in every field of a description.
    let fill = "for (const name of ['name', 'message', 'stack', 'kind', 'helper', 'reason']) \
                Object.defineProperty(error, name, { value: '\\u0001'.repeat(9000) }); throw error;";
    for (made, fields) in [
        ("const error = new Error(); ", 3),
        ("let error; try { fetch('https://example.com/') } catch (thrown) { error = thrown } ", 6),
    ] {
        let text = thrown(&format!("{made}{fill}"));
        let shown: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(shown.len(), fields, "{:?}", shown.keys());
        assert!(text.len() > 2 * 4_000 * 6, "{}", text.len());
        assert!(text.len() <= MAX_ERROR, "{}", text.len());
    }
}

fn thrown(body: &str) -> String {
    let source = format!("(async function(){{{{{body}\n}}}})");
    let load = Load { key: [0; 32], grants: u32::MAX, names: "[]".to_owned(), source };
    let run = RunScript { key: [0; 32], limits: LIMITS, seed: 1, arguments: "{}".to_owned() };
    match MACHINE.lock().unwrap().evaluate(&load, &run, Box::new(Refusing)).unwrap().ending {
        ScriptEnding::Threw(text) => text,
        other => panic!("{other:?}"),
    }
}

/// One machine per process, as in a worker.
static MACHINE: LazyLock<Mutex<ScriptMachine>> = LazyLock::new(|| Mutex::new(ScriptMachine::new().unwrap()));

struct Refusing;

impl EffectPort for Refusing {
    fn ask(&mut self, _effect: Effect) -> Result<EffectAnswer, LinkLost> {
        Ok(EffectAnswer::Refused(EffectError {
            kind: "SECURITY".to_owned(),
            helper: "fetch".to_owned(),
            reason: "no".to_owned(),
            message: "No.".to_owned(),
            moved: 0,
        }))
    }
}

const LIMITS: RunLimits = RunLimits {
    timeout_ms: 60_000,
    fuel: 1 << 40,
    memory_bytes: 64 << 20,
    console_lines: 0,
    console_bytes: 0,
    result_bytes: 4 << 20,
    host_calls: 1,
    host_bytes: 1 << 20,
};
