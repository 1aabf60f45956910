//! Runs every script in `tests/scripts/` as a tool body in the real engine. Its first line states the expectation: `//
//! expect: JSON`, `// throws: text in the error`, or nothing for `true`. Scripts in `fetch` talk to an echo instead of
//! the gateway.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails loudly")]

use std::{
    fs,
    path::Path,
    sync::{LazyLock, Mutex},
};

use toolgate_sandbox::wire::{
    Done, Effect, EffectAnswer, EffectError, FetchAnswer, FetchCall, Load, OUT_OF_TIME, RunLimits, RunScript,
    ScriptEnding,
};
use toolgate_worker::{EffectPort, LinkLost, ScriptMachine};

#[test]
fn scripts_return_the_expected_value() {
    let machine = MACHINE.lock().unwrap();
    let mut failures = Vec::new();
    let mut count = 0;
    let filter = std::env::var("SCRIPT").unwrap_or_default();
    for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")).unwrap() {
        let folder = folder.unwrap();
        let port = || -> Box<dyn EffectPort> {
            if folder.file_name() == "fetch" { Box::new(EchoPort) } else { Box::new(NoEffects) }
        };
        for file in fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            if !path.to_string_lossy().contains(&filter) || path.extension().is_none_or(|kind| kind != "js") {
                continue;
            }
            count += 1;
            if let Err(complaint) = check(&machine, &fs::read_to_string(&path).unwrap(), port()) {
                failures.push(format!("{}: {complaint}", path.display()));
            }
        }
    }
    assert!(count > 0, "no scripts found");
    assert!(failures.is_empty(), "{} of {count} scripts:\n{}", failures.len(), failures.join("\n"));
}

/// One machine per process, as in a worker.
static MACHINE: LazyLock<Mutex<ScriptMachine>> = LazyLock::new(|| Mutex::new(ScriptMachine::new().unwrap()));

fn check(machine: &ScriptMachine, body: &str, port: Box<dyn EffectPort>) -> Result<(), String> {
    let first = body.lines().next().unwrap_or_default();
    let ending = run_with(machine, body, port);
    if let Some(text) = first.strip_prefix("// throws: ") {
        return match ending {
            ScriptEnding::Threw(error) | ScriptEnding::NotData(error) if error.contains(text) => Ok(()),
            other => Err(format!("expected an error with `{text}`, got {other:?}")),
        };
    }
    let expected: serde_json::Value =
        serde_json::from_str(first.strip_prefix("// expect: ").unwrap_or("true"))
            .map_err(|error| error.to_string())?;
    match ending {
        ScriptEnding::Value(text)
            if serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|value| value == expected) =>
        {
            Ok(())
        }
        other => Err(format!("expected {expected}, got {other:?}")),
    }
}

fn run_with(machine: &ScriptMachine, body: &str, port: Box<dyn EffectPort>) -> ScriptEnding {
    run_within(machine, body, port, LIMITS).ending
}

fn run_within(machine: &ScriptMachine, body: &str, port: Box<dyn EffectPort>, limits: RunLimits) -> Done {
    let load = Load {
        key: [0; 32],
        grants: u32::MAX,
        names: "[]".to_owned(),
        source: format!("(async function(){{{{{body}\n}}}})"),
    };
    let run = RunScript { key: [0; 32], limits, seed: 1, arguments: "{}".to_owned() };
    machine.evaluate(&load, &run, port).unwrap()
}

const LIMITS: RunLimits = RunLimits {
    timeout_ms: 60_000,
    fuel: 1 << 40,
    memory_bytes: 64 << 20,
    console_lines: 1_000,
    console_bytes: 64 << 10,
    result_bytes: 4 << 20,
    host_calls: 100,
    host_bytes: 1 << 20,
};

/// Bodies are kept outside the engine's memory until the call ends, but count against its limit.
#[test]
fn kept_bodies_count_as_memory() {
    let machine = MACHINE.lock().unwrap();
    let limits = RunLimits { memory_bytes: 16 << 20, host_bytes: 1 << 30, ..LIMITS };
    let run = |times: usize, then: &str| {
        let body = format!(
            "for (let i = 0; i < {times}; i++) {{ try {{ fetch('https://example.com/') }} catch {{}} }} {then}"
        );
        run_within(&machine, &body, Box::new(Large { handed: LARGE }), limits)
    };
    let few = run(3, "return 'went on'");
    assert_eq!(few.ending, ScriptEnding::Value("\"went on\"".to_owned()));
    assert!(few.usage.memory_bytes >= 3 * LARGE as u64, "{:?}", few.usage);
    assert_eq!(run(8, "return 'went on'").ending, ScriptEnding::Memory);
    // Two bodies that would fit separately do not fit together.
    let fill = "try { return new Uint8Array(12 << 20).length } catch { return 'refused' }";
    assert_eq!(run(0, fill).ending, ScriptEnding::Value((12 << 20).to_string()));
    assert_eq!(run(3, fill).ending, ScriptEnding::Value("\"refused\"".to_owned()));
}

/// The timeout also applies while the gateway works for the tool.
#[test]
fn timeout_in_a_host_call_cannot_be_caught() {
    let machine = MACHINE.lock().unwrap();
    for body in [
        "try { fetch('https://example.com') } catch { return 'went on' } finally { return 'cleaned up' }",
        "try { await fetch('https://example.com') } catch { return 'went on' }",
        "return await Promise.allSettled([fetch('https://example.com')])",
        "try { safety.fs.readText('a') } catch { return 'went on' }",
    ] {
        assert_eq!(run_with(&machine, body, Box::new(TooLate)), ScriptEnding::Timeout, "{body}");
    }
}

/// Browser code awaits the result of `json()`; code for this runtime uses it directly.
#[test]
fn json_of_a_response_is_data_and_can_be_awaited() {
    let machine = MACHINE.lock().unwrap();
    for (answer, body, expected) in [
        (r#"{"a":1}"#, "return got().a", "1"),
        (r#"{"a":1}"#, "return got()", r#"{"a":1}"#),
        (r#"{"a":1}"#, "return { inside: got() }", r#"{"inside":{"a":1}}"#),
        (r#"{"a":1}"#, "return (await got()).a", "1"),
        (r#"{"a":1}"#, "return got().then((data) => data.a)", "1"),
        (r#"{"a":1}"#, "return fetch(u).then((r) => r.json()).then((data) => data.a)", "1"),
        (r#"{"a":1}"#, "return await got().catch(() => ({}))", r#"{"a":1}"#),
        (r#"{"a":1}"#, "return got().finally(() => 2)", r#"{"a":1}"#),
        (r#"{"a":1}"#, "const d = got(); return Promise.all([d, d, got()])", r#"[{"a":1},{"a":1},{"a":1}]"#),
        (r#"{"a":1}"#, "const d = got(); return (await d) === d && (await d) === d", "true"),
        (r#"{"a":1}"#, "return await Object.freeze(got())", r#"{"a":1}"#),
        (r#"{"a":1}"#, "const d = got(); return [Object.keys(d), { ...d }]", r#"[["a"],{"a":1}]"#),
        (r#"{"a":1}"#, "const d = structuredClone(got()); return Reflect.ownKeys(d)", r#"["a"]"#),
        (r#"{"a":1}"#, "return JSON.stringify(got()).length", "7"),
        (r#"{"a":1}"#, "return Reflect.ownKeys(await got())", r#"["a"]"#),
        (
            r#"{"a":1}"#,
            "const d = got(); d.then = 2; return [d, await d]",
            r#"[{"a":1,"then":2},{"a":1,"then":2}]"#,
        ),
        (r#"{"then":"now"}"#, "return [got().then, await got()]", r#"["now",{"then":"now"}]"#),
        (r#"{"then":"now"}"#, "return got().catch(() => 0)", r#"{"then":"now"}"#),
        ("[1,2]", "return [(await got()).length, ...got()]", "[2,1,2]"),
        ("[1,2]", "return got().then((list) => list.map((n) => n + 1))", "[2,3]"),
        ("null", "return await got()", "null"),
        (r#""text""#, "return typeof got()", r#""string""#),
    ] {
        let body = format!("const u = 'https://example.com/', got = () => fetch(u).json(); {body}");
        let ending = run_with(&machine, &body, Box::new(CannedPort(answer)));
        assert_eq!(ending, ScriptEnding::Value(expected.to_owned()), "{answer}: {body}");
    }
}

/// Stacks use the author's columns, without frames of the prelude or the engine.
#[test]
fn console_errors_show_the_authors_lines() {
    let machine = MACHINE.lock().unwrap();
    let body = "console.log(new Error('first'));\n\
        function inner() {\n\
        \x20 atob('*');\n\
        }\n\
        try { [1].forEach(inner) } catch (error) { console.log(error) }\n\
        const own = new Error('own');\n\
        own.stack = 'said (prelude.js)\\nby me';\n\
        console.log(own);";
    let done = run_within(&machine, body, Box::new(NoEffects), LIMITS);
    let lines: Vec<&str> = done.console.iter().map(|(_, line)| line.as_str()).collect();
    let [first, inside, own] = lines.as_slice() else { panic!("{done:?}") };
    assert_eq!(*first, "Error: first\n    at <anonymous> (tool.js:1:17)");
    assert!(inside.starts_with("ToolError: "), "{inside}");
    let frames: Vec<&str> = inside.lines().skip(1).collect();
    assert_eq!(frames, ["    at inner (tool.js:3:3)", "    at <anonymous> (tool.js:5:19)"]);
    assert_eq!(*own, "Error: own\nsaid (prelude.js)\nby me");
}

/// Two modules would share one address range; dropping the first would make the second non-executable.
#[test]
fn process_has_one_machine() {
    drop(MACHINE.lock().unwrap());
    assert!(ScriptMachine::new().is_err_and(|error| format!("{error:#}").contains("already loaded")));
}

/// The gateway fetches the whole body each time, however little the tool reads.
#[test]
fn body_counts_in_full_however_little_is_read() {
    let machine = MACHINE.lock().unwrap();
    let limits = RunLimits { host_bytes: 10 * LARGE as u64, ..LIMITS };
    let body =
        "for (let i = 0; i < 20; i++) { try { fetch('https://example.com/', { maxLength: 1 }) } catch {} }";
    let done = run_within(&machine, body, Box::new(Large { handed: 1 }), limits);
    assert_eq!((done.ending, done.usage.host_calls), (ScriptEnding::HostBytes, 10));
}

/// Returns the request, or a response that the path selects.
struct EchoPort;

impl EffectPort for EchoPort {
    fn ask(&mut self, effect: Effect) -> Result<EffectAnswer, LinkLost> {
        let Effect::Fetch(call) = effect else { return NoEffects.ask(effect) };
        let path = call.url.strip_prefix("https://example.com/").unwrap_or_default().to_owned();
        if path == "silent" && call.timeout_ms > 0 {
            return Ok(refused("HELPER_RUNTIME", "fetch".to_owned(), "aborted"));
        }
        let status = path.strip_prefix("status/").map_or(200, |status| status.parse().unwrap());
        let whole = match path.as_str() {
            "nonsense" => b"no {json".to_vec(),
            "digits" => b"0123456789".to_vec(),
            _ => asked(&call).to_string().into_bytes(),
        };
        // A page of the digits, as the gateway cuts it.
        let (from, most) = if path == "digits" { (call.start_index, call.max_length) } else { (0, 0) };
        let rest = whole.iter().skip(usize::try_from(from).unwrap());
        let most = if most == 0 { usize::MAX } else { usize::try_from(most).unwrap() };
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = vec![
            header("x-many", "a"),
            header("set-cookie", "a=1; Path=/"),
            header("x-many", "b"),
            header("set-cookie", "b=2"),
        ];
        headers.extend((path != "plain").then(|| header("content-type", "application/json")));
        let redirected = path == "redirects";
        Ok(EffectAnswer::Fetched(FetchAnswer {
            status,
            url: if redirected { "https://example.com/elsewhere".to_owned() } else { call.url },
            redirected,
            headers,
            full_length: whole.len() as u64,
            body: rest.take(most).copied().collect(),
        }))
    }
}

fn asked(call: &FetchCall) -> serde_json::Value {
    serde_json::json!({
        "body": call.body,
        "headers": call.headers,
        "maxLength": call.max_length,
        "method": call.method,
        "redirect": format!("{:?}", call.redirect),
        "startIndex": call.start_index,
        "timeoutMs": call.timeout_ms,
        "url": call.url,
    })
}

struct CannedPort(&'static str);

impl EffectPort for CannedPort {
    fn ask(&mut self, _: Effect) -> Result<EffectAnswer, LinkLost> {
        Ok(fetched(self.0.as_bytes().to_vec(), self.0.len()))
    }
}

/// A large response, of which only a part is passed on.
struct Large {
    handed: usize,
}

impl EffectPort for Large {
    fn ask(&mut self, _: Effect) -> Result<EffectAnswer, LinkLost> {
        Ok(fetched(vec![b'x'; self.handed], LARGE))
    }
}

fn fetched(body: Vec<u8>, full_length: usize) -> EffectAnswer {
    EffectAnswer::Fetched(FetchAnswer {
        status: 200,
        url: "https://example.com/".to_owned(),
        redirected: false,
        headers: Vec::new(),
        full_length: full_length as u64,
        body,
    })
}

const LARGE: usize = 4 << 20;

struct TooLate;

impl EffectPort for TooLate {
    fn ask(&mut self, _: Effect) -> Result<EffectAnswer, LinkLost> {
        Ok(refused("HELPER_RUNTIME", "host".to_owned(), OUT_OF_TIME))
    }
}

struct NoEffects;

impl EffectPort for NoEffects {
    fn ask(&mut self, effect: Effect) -> Result<EffectAnswer, LinkLost> {
        let helper = match effect {
            Effect::Fetch(_) => "fetch".to_owned(),
            Effect::File(call) => format!("safety.fs.{}", call.function),
        };
        Ok(refused("SECURITY", helper, "nobody-home"))
    }
}

fn refused(kind: &str, helper: String, reason: &str) -> EffectAnswer {
    EffectAnswer::Refused(EffectError {
        kind: kind.to_owned(),
        helper,
        reason: reason.to_owned(),
        message: "as this test has it".to_owned(),
        moved: 0,
    })
}
