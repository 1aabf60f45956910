//! How is an error described? So that it can be read, and never longer than the gateway takes, whatever a tool throws.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails loudly")]

use std::sync::{LazyLock, Mutex};

use toolgate_sandbox::wire::{Effect, EffectAnswer, EffectError, Ending, Load, MAX_ERROR, Run, RunLimits};
use toolgate_worker::{EffectPort, LinkLost, Machine};

/// No text outside of JavaScript can hold one, and a message must not be lost for it.
#[test]
fn lone_surrogates_in_an_error_are_replaced() {
    let text = thrown("throw new Error('a\\ud800b')");
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["message"], "a\u{fffd}b");
}

#[test]
fn the_largest_description_of_an_error_is_one_that_the_gateway_takes() {
    // Six bytes for each character in JSON, in every field that a description has.
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
    let run = Run { key: [0; 32], limits: LIMITS, seed: 1, arguments: "{}".to_owned() };
    match MACHINE.lock().unwrap().evaluate(&load, &run, Box::new(Refusing)).unwrap().ending {
        Ending::Threw(text) => text,
        other => panic!("{other:?}"),
    }
}

/// A process has one, as a worker does.
static MACHINE: LazyLock<Mutex<Machine>> = LazyLock::new(|| Mutex::new(Machine::new().unwrap()));

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
