//! The JavaScript runtime contract, tested through the real worker.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use toolgate_gate::{Reason, RunReport, StopFlag};
use toolgate_handlers::CallGrants;

use crate::gateway::{Gateway, NoSecrets, Secret, document};

mod fetch;
mod files;

#[track_caller]
fn check(gateway: &Gateway, code: &str, expected: &Value) {
    let report = gateway.body(code);
    match &report.outcome {
        Ok(Some(value)) => assert_eq!(value, expected, "{code}"),
        other => panic!("{code}: {other:?}"),
    }
}

#[track_caller]
fn check_fails(report: &RunReport, code: Reason, message: &str) {
    let failure = report.outcome.as_ref().unwrap_err();
    assert_eq!(failure.reason, code, "{failure:?}");
    assert!(failure.message.contains(message), "{failure:?}");
}

fn with_params(code: &str) -> Value {
    let mut tool = document(code);
    tool["params"] = json!([
        { "name": "city", "description": "a", "required": false, "type": "STRING", "testValue": "x" },
        { "name": "constructor", "description": "b", "required": false, "type": "STRING", "testValue": "x" },
        { "name": "key", "description": "c", "required": false, "type": "STRING", "testValue": "x" },
    ]);
    tool["staticVariables"] = json!([{ "key": "Bearer ${TOKEN}" }]);
    tool
}

#[test]
fn static_variables_win_over_arguments() {
    let gateway = Gateway::new();
    let secrets = Secret("TOKEN".into(), "abcd1234".into());
    let code = "return [typeof city, typeof constructor, key === 'Bearer ' + 'abcd' + 1234]";
    let tool = gateway.tool(&with_params(code));
    let report = gateway.run(&tool, &json!({ "city": "  ", "key": "mine" }), &secrets);
    assert_eq!(report.outcome.unwrap(), Some(json!(["undefined", "undefined", true])));
    let tool = gateway.tool(&with_params("let city = 'own'; return [city, constructor]"));
    let report = gateway.run(&tool, &json!({ "city": "Oslo", "constructor": "c" }), &secrets);
    assert_eq!(report.outcome.unwrap(), Some(json!(["own", "c"])));
}

/// A caller whose text is echoed must not learn whether it is a prefix of the tool's secret.
#[test]
fn guess_of_a_secret_gets_the_same_answer_as_any_other_text() {
    let gateway = Gateway::new();
    let secrets = Secret("TOKEN".into(), "abcd1234wxyz".into());
    let code = "console.log(city); if (city.startsWith('throw')) throw new Error(city); \
                if (city.startsWith('parse')) safety.parser.xml(`<${city}/>`); return { [city]: [city, key] }";
    let tool = gateway.tool(&with_params(code));
    let answer = |text: &str, guess: &str| {
        let report = gateway.run(&tool, &json!({ "city": text }), &secrets);
        format!("{:?} {:?}", report.outcome, report.console).replace(guess, "GUESS")
    };
    let mut forms = Vec::new();
    for doing in ["return ", "throw ", "parse "] {
        forms.extend(["…", " … ", "", "… and more"].map(|after| (doing.to_owned(), after)));
        // Lengths around the limits where the prelude and the helpers cut a text.
        forms.extend([72, 76, 80].map(|length| (format!("{doing:x<length$}"), "")));
    }
    forms.extend([3_987, 3_990, 3_993, 3_999].map(|length| (format!("{:x<length$}", "throw "), "…")));
    for (before, after) in forms {
        let [right, wrong] =
            ["abcd1234", "abcd1243"].map(|guess| answer(&format!("{before}{guess}{after}"), guess));
        assert_eq!(right, wrong, "{before:.12} {}{after}", before.len());
        assert!(right.contains("GUESS") || before.len() > 70, "{right:.300}");
    }
}

/// The prelude cuts a long message, perhaps inside the secret.
#[test]
fn secret_that_is_cut_off_in_a_thrown_message_is_not_shown_in_part() {
    let gateway = Gateway::new();
    let secrets = Secret("TOKEN".into(), "abcd1234wxyz".into());
    for length in 3_980..4_001 {
        let tool =
            gateway.tool(&with_params(&format!("throw new Error('first' + 'x'.repeat({length}) + key)")));
        let failure = gateway.run(&tool, &json!({}), &secrets).outcome.unwrap_err();
        assert!(failure.message.starts_with("Error: firstx"), "{failure:?}");
        assert!(failure.message.ends_with("x…") && !failure.message.contains('a'), "{failure:?}");
    }
}

#[test]
fn placeholders_in_arguments_are_text_and_a_missing_secret_stops_the_call() {
    let gateway = Gateway::new();
    let tool = gateway.tool(&with_params("return city"));
    let secrets = Secret("TOKEN".into(), "abcd1234".into());
    let report = gateway.run(&tool, &json!({ "city": "${TOKEN}" }), &secrets);
    assert_eq!(report.outcome.unwrap(), Some(json!("${TOKEN}")));
    check_fails(&gateway.run(&tool, &json!({}), &NoSecrets), Reason::MissingSecret, "`TOKEN`");
}

#[test]
fn secrets_are_redacted_in_every_output() {
    let gateway = Gateway::new();
    let secrets = Secret("TOKEN".into(), "abcd1234".into());
    let code =
        "console.log('is', key); if (city) throw new Error('no ' + key); return { [key]: btoa('x' + key) }";
    let tool = gateway.tool(&with_params(code));
    for arguments in [json!({}), json!({ "city": "x" })] {
        let report = gateway.run(&tool, &arguments, &secrets);
        let shown = format!("{report:?}");
        assert!(!shown.contains("abcd1234") && shown.contains("***"), "{shown}");
        assert!(!shown.contains("YWJjZDEyMzQ") && !shown.contains("FiY2QxMjM0"), "{shown}");
    }
    // A value from a file ends with a line break, which the code trims before use.
    let secrets = Secret("TOKEN".into(), " abcd1234\nefgh5678\n".into());
    let code = "console.log(key.trim()); return [key.trim(), key.split('\\n')[0].trim(), btoa(key.trim())]";
    let shown = format!("{:?}", gateway.run(&gateway.tool(&with_params(code)), &json!({}), &secrets));
    assert!(!shown.contains("abcd1234") && !shown.contains("efgh5678"), "{shown}");
    assert!(!shown.contains("YWJjZDEyMzQKZWZnaDU2Nzg"), "{shown}");
}

#[test]
fn results_are_plain_data() {
    let gateway = Gateway::new();
    check(
        &gateway,
        "return [NaN, Infinity, undefined, () => 1, new Date(0), { f() {}, u: undefined }]",
        &json!([null, null, null, null, "1970-01-01T00:00:00.000Z", {}]),
    );
    check(&gateway, "return 'a\\ud800b'", &json!("a\u{fffd}b"));
    assert_eq!(gateway.body("let x = 1").outcome.unwrap(), None);
    check_fails(&gateway.body("const a = {}; a.a = a; return a"), Reason::NotData, "circular");
    check_fails(&gateway.body("return { n: 1n }"), Reason::NotData, "BigInt");
    check_fails(&gateway.body("return () => 1"), Reason::NotData, "function");
    check_fails(&gateway.body("await new Promise(() => {})"), Reason::UnsettledPromise, "promise");
}

#[test]
fn errors_show_the_authors_lines() {
    let gateway = Gateway::new();
    let report = gateway.body("const a = 1;\nfunction inner() {\n  throw new TypeError('bad');\n}\ninner();");
    let failure = report.outcome.unwrap_err();
    assert_eq!(failure.message, "TypeError: bad");
    assert!(
        failure.stack[0].starts_with("line 3, ") && failure.stack[0].ends_with("in inner"),
        "{:?}",
        failure.stack
    );
    assert!(failure.stack[1].starts_with("line 5, "), "{:?}", failure.stack);
    let report = gateway.body("throw new Error('first')");
    assert_eq!(report.outcome.unwrap_err().stack[0], "line 1, column 11, in the body");
    check_fails(&gateway.body("return 1 +;"), Reason::CodeInvalid, "SyntaxError");
    let report = gateway.body("return 1 +;");
    assert_eq!(report.outcome.unwrap_err().stack[0], "line 1, column 11, in the body");
    let report = gateway.body("const a = 1;\nif (a) {\n  return a;");
    assert_eq!(report.outcome.unwrap_err().stack[0], "line 3, at the end of the code");
    check_fails(
        &gateway.body("return 1 }}); globalThis.x = 1; (async function(){{ return 2"),
        Reason::CodeInvalid,
        "closes",
    );
}

#[test]
fn the_same_call_stops_at_the_same_point() {
    let gateway = Gateway::new();
    let tool = gateway.tool(&document("let n = 0; while (true) { n++; if (n % 1000 === 0) console.log(n) }"));
    let tool = tool.with_limits(|limits| limits.fuel = 200_000_000);
    let runs: Vec<RunReport> = (0..3).map(|_| gateway.run(&tool, &json!({}), &NoSecrets)).collect();
    for run in &runs {
        check_fails(run, Reason::Statements, "10000 statements");
        assert_eq!(run.console, runs[0].console);
        assert!(run.console.len() > 10);
    }
}

#[test]
fn statements_used_are_the_same_for_the_same_input() {
    let gateway = Gateway::new();
    let code = "const m = {}; for (let i = 0; i < 5000; i++) m['k' + i % 97] = (m['k' + i % 97] || 0) + i; return Object.keys(m).length";
    let used: Vec<u64> = (0..3).map(|_| gateway.body(code).usage.statements).collect();
    assert!(used[0] > 0 && used.iter().all(|count| *count == used[0]), "{used:?}");
}

/// The longest loop in the reference catalog: every minute of a leap year, to find the next run of a schedule.
#[test]
fn loop_over_a_year_of_minutes_fits_the_statement_limit() {
    let gateway = Gateway::new();
    let code = "const start = Date.UTC(2028, 0, 1); let hits = 0;\n\
        for (let i = 0; i < 527040; i++) {\n\
          const d = new Date(start + i * 60000);\n\
          const fields = [d.getUTCMinutes(), d.getUTCHours(), d.getUTCDate(), d.getUTCMonth() + 1, d.getUTCDay()];\n\
          if (fields[0] === 59 && fields[1] === 23 && fields[2] === 29 && fields[3] === 2) hits++;\n\
        }\n\
        return hits;";
    check(&gateway, code, &json!(1));
}

#[test]
fn file_access_matches_the_grants() {
    let gateway = Gateway::new();
    check(
        &gateway,
        "return [typeof safety.fs, typeof fetch, typeof safety.parser]",
        &json!(["undefined", "undefined", "object"]),
    );
    let mut reader = document(
        "return [safety.fs.readText('notes.txt'), safety.fs.lineCount('notes.txt'), typeof safety.fs.writeText, \
         safety.fs.list(), safety.fs.grep('^w', 'notes.txt', { numbered: true }), safety.fs.exists('../outside/secret.txt')]",
    );
    reader["sandboxOverrides"] = json!({ "fileRead": true });
    let report = gateway.run(&gateway.tool(&reader), &json!({}), &NoSecrets);
    let expected = json!([
        "hello\nworld\n",
        2,
        "undefined",
        ["abs-out", "dir-out", "link-out", "loop", "notes.txt", "sub"],
        ["2:world"],
        false
    ]);
    assert_eq!(report.outcome.unwrap(), Some(expected));
    assert_eq!(report.effects.len(), 5);
    assert_eq!(report.effects[0].what, "safety.fs.readText");
    let mut mover = document(
        "safety.fs.copy('notes.txt', 'sub/b.txt'); safety.fs.move('sub/b.txt', 'sub/c.txt'); return 1",
    );
    mover["sandboxOverrides"] = json!({ "fileRead": true, "fileWrite": true });
    let report = gateway.run(&gateway.tool(&mover), &json!({}), &NoSecrets);
    assert!(report.outcome.is_ok(), "{report:?}");
    let paths: Vec<_> =
        report.effects.iter().map(|made| (made.target.as_str(), made.to.as_deref())).collect();
    assert_eq!(paths, [("notes.txt", Some("sub/b.txt")), ("sub/b.txt", Some("sub/c.txt"))]);
    std::fs::remove_file(gateway.workspace().join("sub/c.txt")).unwrap();
    let mut writer = document("return [safety.fs.writeText('new/a.txt', 'x'), typeof safety.fs.readText]");
    writer["sandboxOverrides"] = json!({ "fileWrite": true });
    let report = gateway.run(&gateway.tool(&writer), &json!({}), &NoSecrets);
    assert!(report.outcome.is_ok(), "{report:?}");
    assert_eq!(std::fs::read_to_string(gateway.workspace().join("new/a.txt")).unwrap(), "x");
}

/// A server that answers every connection with the same bytes and returns the requests.
fn serve(answer: &'static str) -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            let _ = tell.send(String::from_utf8_lossy(&request[..read]).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, told)
}

#[test]
fn fetch_answers_at_once_and_can_be_awaited() {
    let gateway = Gateway::new();
    let (port, told) = serve(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-a: 1\r\ncontent-length: 13\r\nconnection: close\r\n\r\n{\"n\":[1,2,3]}",
    );
    for code in [
        "const r = fetch(URL_); return [r.ok, r.status, r.json().n.length, r.headers.get('X-A')]",
        "const r = await fetch(URL_); return [r.ok, r.status, (await r.json()).n.length, r.headers.get('x-a')]",
        "return fetch(URL_).then((r) => [r.ok, r.status, r.json().n.length, [...r.headers].find(([k]) => k === 'x-a')[1]])",
        "const [r] = await Promise.all([fetch(URL_, { signal: AbortSignal.timeout(5000) })]); return [r.ok, r.status, JSON.parse(new TextDecoder().decode(r.arrayBuffer())).n.length, '1']",
    ] {
        let mut tool = document(&code.replace("URL_", &format!("'http://127.0.0.1:{port}/a?b=c'")));
        tool["sandboxOverrides"] = json!({ "networkMode": "allowlist", "hostsAllow": ["127.0.0.1"] });
        let report = gateway.run(&gateway.tool(&tool), &json!({}), &NoSecrets);
        assert_eq!(report.outcome.unwrap(), Some(json!([true, 200, 3, "1"])), "{code}");
        assert!(told.recv().unwrap().starts_with("GET /a?b=c HTTP/1.1\r\n"));
        assert_eq!(report.effects[0].target, format!("http://127.0.0.1:{port}/a"));
    }
    let mut tool = document(&format!(
        "const r = fetch('http://127.0.0.1:{port}/', {{ method: 'post', body: 'hi', headers: {{ A: 'b' }}, maxLength: 5 }}); return [r.text(), r.truncated, r.nextStartIndex]"
    ));
    tool["sandboxOverrides"] = json!({ "networkMode": "allowlist", "hostsAllow": ["127.0.0.1"] });
    let report = gateway.run(&gateway.tool(&tool), &json!({}), &NoSecrets);
    assert_eq!(report.outcome.unwrap(), Some(json!(["{\"n\":", true, 5])));
    let asked = told.recv().unwrap();
    assert!(
        asked.starts_with("POST / ") && asked.ends_with("\r\n\r\nhi") && asked.contains("a: b\r\n"),
        "{asked}"
    );
}

/// A request to a silent server was sent and must be recorded.
#[test]
fn fetch_cut_off_by_the_deadline_is_recorded() {
    let gateway = Gateway::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The first request is answered; the second is read but never answered.
    let served = thread::spawn(move || {
        let mut request = [0; 4096];
        let (mut first, _) = listener.accept().unwrap();
        assert!(first.read(&mut request).unwrap() > 0);
        first.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        let mut sent = Vec::new();
        // Waits until the gateway gives up.
        second.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let _ = second.read_to_end(&mut sent);
        String::from_utf8_lossy(&sent).into_owned()
    });
    let mut tool = document(&format!(
        "fetch('http://127.0.0.1:{port}/seen'); fetch('http://127.0.0.1:{port}/silent?q=1', {{ method: 'POST', body: 'the loot' }})"
    ));
    tool["sandboxOverrides"] = json!({ "networkMode": "allowlist", "hostsAllow": ["127.0.0.1"] });
    let tool = gateway.tool(&tool).with_limits(|limits| limits.timeout_ms = 3_000);
    let report = gateway.run(&tool, &json!({}), &NoSecrets);
    check_fails(&report, Reason::Timeout, "3000 ms");
    assert!(served.join().unwrap().ends_with("the loot"));
    let told: Vec<(&str, &str, &str)> = report
        .effects
        .iter()
        .map(|effect| (effect.what.as_str(), effect.target.as_str(), effect.outcome.as_str()))
        .collect();
    let (seen, silent) = (format!("http://127.0.0.1:{port}/seen"), format!("http://127.0.0.1:{port}/silent"));
    assert_eq!(told, [("fetch GET", seen.as_str(), "204"), ("fetch POST", silent.as_str(), "interrupted")]);
    gateway.still_serves();
}

#[test]
fn refused_fetch_is_an_error_with_class_and_reason() {
    let gateway = Gateway::new();
    let mut tool = document(
        "try { fetch('http://127.0.0.1/') } catch (e) { return [e.kind, e.helper, e.reason, e instanceof Error] }",
    );
    tool["sandboxOverrides"] = json!({ "networkMode": "strict" });
    let report = gateway.run(&gateway.tool(&tool), &json!({}), &NoSecrets);
    assert_eq!(report.outcome.unwrap(), Some(json!(["SECURITY", "fetch", "literal-private-ip", true])));
}

#[test]
fn used_helpers_are_reported() {
    let gateway = Gateway::new();
    let code = "safety.parser.html('<p>a'); crypto.subtle.digest('SHA-256', new TextEncoder().encode('a')); return 1";
    assert_eq!(gateway.body(code).usage.helpers, ["encoding", "crypto", "safety.parser.html"]);
    // The same worker, without traces of the earlier call.
    assert_eq!(gateway.body("return [2, 1].sort()").usage.helpers, Vec::<&str>::new());
    let code = "try { safety.parser.xml('<') } catch { } console.log(1); await new Promise((on) => setTimeout(on, 1))";
    assert_eq!(gateway.body(code).usage.helpers, ["console", "timers", "safety.parser.xml"]);
}

#[test]
fn unawaited_promises_are_completed() {
    let gateway = Gateway::new();
    let code =
        "async function later() { await null; await null; console.log('done') }\nlater();\nreturn 'returned'";
    let report = gateway.body(code);
    assert_eq!(report.outcome.unwrap(), Some(json!("returned")));
    assert_eq!(report.console.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["done"]);
    // The call's limits still apply.
    let report = gateway.body("(async () => { for (;;) await null })();\nreturn 'returned'");
    check_fails(&report, Reason::Statements, "");
}

#[test]
fn console_beyond_its_limits_is_dropped_and_the_call_goes_on() {
    let gateway = Gateway::new();
    let report = gateway.body("for (let i = 0; i < 1500; i++) console.log(i); return 'done'");
    assert_eq!(report.outcome.unwrap(), Some(json!("done")));
    assert_eq!((report.console.len(), report.console_dropped), (1000, 500));
    let report = gateway.body("for (let i = 0; i < 100; i++) console.warn('x'.repeat(1000)); return 1");
    assert_eq!((report.console.len(), report.console_dropped), (65, 35));
}

/// A person approves `edit sub/a.txt`; meanwhile `sub` was replaced by a symlink to `.github`.
#[test]
fn path_changed_after_the_check_is_not_used() {
    let gateway = Gateway::new();
    let document: Value =
        serde_json::from_str(include_str!("../../../../catalog/tools/agent/edit.json")).unwrap();
    let tool = gateway.tool(&document);
    let arguments = json!({ "path": "sub/a.txt", "old": "a", "replacement": "b" });
    let arguments = arguments.as_object().unwrap();
    let at = |path: &str| gateway.workspace().join(path);
    let edit = |granted: &CallGrants| {
        gateway.runtime.block_on(gateway.runner.run(&tool, arguments, granted, &NoSecrets, "x"))
    };
    std::fs::create_dir(at(".github")).unwrap();
    std::fs::write(at(".github/a.txt"), "a\n").unwrap();
    let survey = tool.survey(arguments, &StopFlag::default()).unwrap();
    std::fs::rename(at("sub"), at("aside")).unwrap();
    std::os::unix::fs::symlink(".github", at("sub")).unwrap();
    let report = edit(&survey.granted);
    assert_eq!(report.effects[0].outcome, "SECURITY path-changed", "{report:?}");
    assert!(report.outcome.is_err(), "{report:?}");
    assert_eq!(std::fs::read_to_string(at(".github/a.txt")).unwrap(), "a\n");
    // A new check judges and shows the symlink's target.
    let report = edit(&tool.survey(arguments, &StopFlag::default()).unwrap().granted);
    assert!(report.outcome.is_ok(), "{report:?}");
    assert_eq!(std::fs::read_to_string(at(".github/a.txt")).unwrap(), "b\n");
}

/// Symlinks are common in monorepos. Their targets were not checked, but their names may be listed.
#[test]
fn symlinks_out_of_a_listed_directory_are_listed_as_symlinks() {
    let gateway = Gateway::new();
    let document: Value =
        serde_json::from_str(include_str!("../../../../catalog/tools/agent/list.json")).unwrap();
    let tool = gateway.tool(&document);
    let at = |path: &str| gateway.workspace().join(path);
    std::fs::create_dir(at("linked")).unwrap();
    std::fs::write(at("linked/a.md"), "a\n").unwrap();
    std::fs::write(at("shared.md"), "shared\n").unwrap();
    std::os::unix::fs::symlink("../shared.md", at("linked/shared.md")).unwrap();
    let arguments = json!({ "path": "linked" });
    let arguments = arguments.as_object().unwrap();
    let survey = tool.survey(arguments, &StopFlag::default()).unwrap();
    let run = gateway.runner.run(&tool, arguments, &survey.granted, &NoSecrets, "x");
    let report = gateway.runtime.block_on(run);
    let expected = json!({ "path": "linked", "total": 2, "entries": [
        { "name": "a.md", "kind": "file", "size": 2 },
        { "name": "shared.md", "kind": "link", "size": null },
    ] });
    assert_eq!(report.outcome.unwrap(), Some(expected));
}

fn toolgate(args: &[&str]) -> (i32, String) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(args)
        .current_dir(root)
        .output()
        .unwrap();
    let shown = String::from_utf8(run.stdout).unwrap() + &String::from_utf8(run.stderr).unwrap();
    (run.status.code().unwrap(), shown)
}

#[test]
fn examples_that_need_no_network_pass() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::create_dir(workspace.path().join("notes")).unwrap();
    std::fs::write(workspace.path().join("notes/shopping.md"), "milk\n").unwrap();
    let mut args = vec!["test"];
    for tool in ["evaluate_formula", "read_note", "text_stats", "write_note"] {
        args.push(Box::leak(format!("examples/tools/{tool}/tool.json").into_boxed_str()));
    }
    args.extend(["--workspace", workspace.path().to_str().unwrap()]);
    let (code, shown) = toolgate(&args);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.ends_with("4 tools passed, 0 failed\n"), "{shown}");
}

#[test]
fn run_shows_result_console_and_limits() {
    let (code, shown) = toolgate(&["run", "examples/tools/text_stats/tool.json", "text=to be or not"]);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("result") && shown.contains("statements") && shown.contains("seccomp"), "{shown}");
    let (code, shown) = toolgate(&["run", "examples/tools/text_stats/tool.json", "txt=a"]);
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("unknown argument `txt`"), "{shown}");
    let long = format!("file={}", "a".repeat(501));
    let (code, shown) = toolgate(&["run", "examples/tools/count_lines/tool.yaml", &long]);
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("the arguments do not fit: `/file`: expected at most 500 characters"), "{shown}");
    let (code, shown) = toolgate(&["run", "examples/tools/count_lines/tool.yaml", "file:=[\"README.md\"]"]);
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("`/file`: expected a string"), "{shown}");
    let (code, shown) = toolgate(&["run", "examples/tools/http_get_weather/tool.yaml"]);
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("`http` tools cannot be run by this gateway yet"), "{shown}");
}
