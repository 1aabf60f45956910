//! Every script below `tests/scripts/` is a tool body, run by the real engine. Its first line says what to expect:
//! `// expect: JSON`, `// throws: text in the error`, or nothing for `true`.

use std::{fs, path::Path};

use toolgate_sandbox::wire::{Effect, EffectAnswer, EffectError, Ending, Load, Run, RunLimits};
use toolgate_worker::{EffectPort, LinkLost, Machine};

#[test]
fn scripts_return_what_they_promise() {
    let machine = Machine::new().unwrap();
    let mut failures = Vec::new();
    let mut count = 0;
    let filter = std::env::var("SCRIPT").unwrap_or_default();
    for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if !path.to_string_lossy().contains(&filter) || path.extension().is_none_or(|kind| kind != "js") {
                continue;
            }
            count += 1;
            if let Err(complaint) = check(&machine, &fs::read_to_string(&path).unwrap()) {
                failures.push(format!("{}: {complaint}", path.display()));
            }
        }
    }
    assert!(count > 0, "no scripts found");
    assert!(failures.is_empty(), "{} of {count} scripts:\n{}", failures.len(), failures.join("\n"));
}

fn check(machine: &Machine, body: &str) -> Result<(), String> {
    let first = body.lines().next().unwrap_or_default();
    let ending = run(machine, body);
    if let Some(text) = first.strip_prefix("// throws: ") {
        return match ending {
            Ending::Threw(error) | Ending::NotData(error) if error.contains(text) => Ok(()),
            other => Err(format!("expected an error with `{text}`, got {other:?}")),
        };
    }
    let expected: serde_json::Value =
        serde_json::from_str(first.strip_prefix("// expect: ").unwrap_or("true"))
            .map_err(|error| error.to_string())?;
    match ending {
        Ending::Value(text)
            if serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|value| value == expected) =>
        {
            Ok(())
        }
        other => Err(format!("expected {expected}, got {other:?}")),
    }
}

fn run(machine: &Machine, body: &str) -> Ending {
    let load = Load {
        key: [0; 32],
        grants: u32::MAX,
        names: "[]".to_owned(),
        source: format!("(async function(){{{{{body}\n}}}})"),
    };
    let limits = RunLimits {
        timeout_ms: 60_000,
        fuel: 1 << 40,
        memory_bytes: 64 << 20,
        console_lines: 1_000,
        console_bytes: 64 << 10,
        result_bytes: 4 << 20,
        host_calls: 100,
        host_bytes: 1 << 20,
    };
    let run = Run { key: [0; 32], limits, seed: 1, arguments: "{}".to_owned() };
    machine.evaluate(&load, &run, Box::new(Nobody)).unwrap().ending
}

struct Nobody;

impl EffectPort for Nobody {
    fn ask(&mut self, effect: Effect) -> Result<EffectAnswer, LinkLost> {
        Ok(EffectAnswer::Refused(EffectError {
            kind: "SECURITY".to_owned(),
            helper: match effect {
                Effect::Fetch(_) => "fetch".to_owned(),
                Effect::File(call) => format!("safety.fs.{}", call.function),
            },
            reason: "nobody-home".to_owned(),
            message: "no gateway in this test".to_owned(),
        }))
    }
}
