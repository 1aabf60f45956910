//! Tests what a caller sees of a command's outcome.

use std::{future::Future, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate_gate::{EffectEntry, EffectKind, Reason, RunRequest, StopFlag, UnreportedEffects};
use toolgate_handlers::{CliTool, CommandOrder, CommandOutcome, Denial, HostDenial, Launch, NetworkEffects};
use toolgate_policy::{PolicySet, UserOverrides};
use toolgate_sandbox::{Attempt, Ending};
use toolgate_spec::Format;

use crate::{
    argv::manifest,
    world::{World, call, ended, request, resolve, runtime, said},
};

#[track_caller]
fn check(command: &str, ended: CommandOutcome, expect: Result<&str, (Reason, &str)>) {
    let world = World::new();
    let (tool, _) = world.recorded(&manifest(command, "'{text}'"), ended);
    let report = call(&tool, &json!({ "text": "hello" })).unwrap();
    match (report.outcome, expect) {
        (Ok(value), Ok(text)) => assert_eq!(value, Some(json!(text))),
        (Err(failure), Err((reason, part))) => {
            assert_eq!(failure.reason, reason, "{}", failure.message);
            assert!(failure.message.contains(part), "{}", failure.message);
            assert!(!failure.message.contains('\n') && !failure.message.contains('\x1b'));
        }
        (outcome, expect) => panic!("{outcome:?}, not {expect:?}"),
    }
}

#[test]
fn text_output_is_returned() {
    check("echo", said("\x1b[31mred\x1b[0m\n"), Ok("red\n"));
    check("echo", said(""), Ok(""));
}

#[test]
fn every_failure_has_its_reason() {
    let with = |ending| ended(ending, "some output", "line one\n\n  line \x1b[1mtwo\x1b[0m\n");
    check("echo", with(Ending::Exited(3)), Err((Reason::CommandFailed, "exit code 3: line one / line two")));
    check("echo", with(Ending::Signalled(9)), Err((Reason::CommandFailed, "signal 9 (killed): line one")));
    check("echo", with(Ending::Signalled(24)), Err((Reason::Timeout, "CPU time")));
    check("echo", with(Ending::TimedOut), Err((Reason::Timeout, "10000 ms")));
    check("echo", with(Ending::OutOfMemory), Err((Reason::Memory, "536870912 bytes")));
    check("echo", with(Ending::OutputTooLarge), Err((Reason::ResultTooLarge, "ask for less")));
    check("echo", with(Ending::JailFailed("no layers".into())), Err((Reason::JailUnavailable, "no layers")));
}

#[test]
fn long_error_output_is_cut() {
    let world = World::new();
    let (tool, _) =
        world.recorded(&manifest("echo", "'{text}'"), ended(Ending::Exited(1), "", &"y".repeat(60_000)));
    let report = call(&tool, &json!({ "text": "x" })).unwrap();
    assert!(report.outcome.unwrap_err().message.chars().count() < 1_100);
    assert!(report.console[0].1.chars().count() <= 501);
}

fn not_listed(target: &str) -> Denial {
    Denial::Host { target: target.to_owned(), why: HostDenial::NotListed }
}

/// A command that reached a host, was denied another, and never ends.
struct NeverEnds(Arc<Notify>);

impl Launch for NeverEnds {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        let reached = EffectEntry {
            kind: EffectKind::Fetch,
            what: "connect CONNECT".to_owned(),
            target: "api.example.com:443".to_owned(),
            to: None,
            outcome: "stopped".to_owned(),
            bytes: 7,
            elapsed: Duration::ZERO,
        };
        let refused = not_listed("other.example.com:443");
        let effects = NetworkEffects { listed: vec![reached], dropped: 2, dropped_bytes: 30 };
        order.progress.set_source(move || (effects.clone(), vec![refused.clone()].into()));
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

/// The effects must be recorded although the caller disconnects.
#[test]
fn effects_of_a_dropped_call_are_left_for_the_journal() {
    let (world, begun) = (World::new(), Arc::new(Notify::new()));
    let tool = world.load(&manifest("echo", "'{text}'")).unwrap();
    let tool = world.handlers(Arc::new(NeverEnds(Arc::clone(&begun)))).runnable(tool);
    let arguments = json!({ "text": "x" });
    let arguments = arguments.as_object().unwrap();
    let left = UnreportedEffects::default();
    let survey = Arc::clone(&tool).survey(arguments, &StopFlag::default()).unwrap();
    runtime().block_on(async {
        tokio::select! {
            report = survey.call.run(RunRequest { unreported: &left, ..request(arguments) }) => panic!("it ended: {report:?}"),
            () = begun.notified() => {}
        }
    });
    let left = format!("{left:?}");
    for part in ["api.example.com:443", "reaching `other.example.com:443`"] {
        assert!(left.contains(part), "{left}");
    }
}

/// A key of several lines is not recognised after joining or cutting.
#[test]
fn secret_in_error_output_is_redacted_before_lines_are_joined() {
    let key = [
        "rG3nmfZN/3yKJyF3GINhFLUTv7Zh0eLhjopfdLi+YuAzWLLazZACmtxyT/SDvrrS",
        "VkRmAd7RCs13sQWs+RsjVKs0mE+SxlbEJ33N6xGQSflIeDQww2aYVjCNHH9J9lC3",
        "uNYqPLOupHzCEUXp7dnsNWG2/5gxpLGIftSSj/DaURZc7MvAwsHe9BGDVSH0f/2q",
        "oIX7uxB5JwPdXYQttd1UYtFyv2h1WYUluv6e+l/hHMBYcv32Z9mFMYGKBFMYa0Az",
        "zD4USxSwZoc8PDVwOJjRkh0XONuzMgeCS1vAvF1isi3wShiXsTwEGcxz+etw9aAL",
    ];
    let pem = format!(
        "cannot read\n-----BEGIN {0} KEY-----\n{1}\n-----END {0} KEY-----\n",
        "PRIVATE",
        key.join("\n")
    );
    let token = ["ghr_bKf7Oc2yxD0a1", "oAZsL88hdai0YK6yK0aVdYp"];
    let broken = format!("not known: {}\n", token.join("\n"));
    for (complaint, pieces) in [(pem, key.as_slice()), (broken, token.as_slice())] {
        let world = World::new();
        let failed = ended(Ending::Exited(1), "", &complaint);
        let (tool, _) = world.recorded(&manifest("echo", "'{text}'"), failed);
        let report = call(&tool, &json!({ "text": "x" })).unwrap();
        let failure = report.outcome.unwrap_err();
        let shown = format!("{failure:?}");
        let (message, heard) = (failure.message, failure.unredacted.unwrap());
        assert!(message.contains("[REDACTED:"), "{message}");
        for piece in pieces {
            // Only for alert patterns.
            assert!(heard.contains(piece) && !shown.contains(piece), "{shown}");
            assert!(!message.contains(piece), "{message}");
            assert!(report.console.iter().all(|(_, line)| !line.contains(piece)), "{:?}", report.console);
        }
    }
}

/// A caller who learns that a text matched in a secret could guess the next letter.
#[test]
fn match_in_a_secret_is_not_reported() {
    let key = ["sk_live_", "Zq8Rt5Vw2Xy7Bn4Mk9Lp3Hd6"].concat();
    let secret = format!("src/pay.rs:3:let key = \"{key}\";\n");
    let open = "src/main.rs:9:let live = 1;\n";
    let searches = [
        ("grep", "'--line-number'\n'--'\n'{text}'\n'src'"),
        ("rg", "'{text}'"),
        ("git", "'grep'\n'-e'\n'{text}'"),
    ];
    let answer_of = |manifest: &str, arguments: &Value, ended: CommandOutcome| {
        let world = World::new();
        let (tool, _) = world.stand_in_for(manifest, ended);
        let report = call(&tool, arguments).unwrap();
        format!("{:?} {:?} {:?}", report.outcome, report.console, report.refused)
    };
    let answer = |(command, args): (&str, &str), ended: CommandOutcome| {
        answer_of(&manifest(command, args), &json!({ "text": "live" }), ended)
    };
    for search in searches {
        let nothing = answer(search, ended(Ending::Exited(1), "", ""));
        assert!(nothing.starts_with("Ok("), "{nothing}");
        assert_eq!(answer(search, said(&secret)), nothing, "{search:?}");
        assert_eq!(
            answer(search, said(&format!("{secret}{open}"))),
            answer(search, said(open)),
            "{search:?}"
        );
    }
    // Context lines of a removed match are not shown either.
    let around = ("grep", "'-n'\n'-C2'\n'--'\n'{text}'\n'src'");
    let groups = format!("src/pay.rs-2-before\n{secret}src/pay.rs-4-after\n--\n{open}");
    assert_eq!(answer(around, said(&groups)), answer(around, said(open)));
    // Not a search.
    let shown = answer(("echo", "'{text}'"), said(&secret));
    assert!(shown.contains("src/pay.rs"), "{shown}");
    let fixed = "
name: tried
description: Is tried. Returns text.
classification: read
input: {type: object, required: [path], properties: {path: {type: string, format: path}}}
testInput: {path: .}
handler: {cli: {command: grep, args: ['-r', live, '--', '{path}']}}
capability: {extends: read}
";
    let shown = answer_of(fixed, &json!({ "path": "." }), said(&secret));
    assert!(shown.contains("src/pay.rs"), "{shown}");
}

/// Alert patterns apply however the command ends, also to output that is not shown.
#[test]
fn output_of_a_failed_command_is_searched_for_alerts() {
    let as_text = manifest("echo", "'{text}'");
    let as_json = as_text.replace("    command:", "    output: json\n    command:");
    for (tool, ending) in [
        (&as_text, Ending::Exited(1)),
        (&as_text, Ending::TimedOut),
        (&as_text, Ending::OutputTooLarge),
        (&as_json, Ending::Exited(0)),
    ] {
        let world = World::new();
        let (tool, _) = world.recorded(tool, ended(ending, "launch codes", "oops"));
        let failure = call(&tool, &json!({ "text": "x" })).unwrap().outcome.unwrap_err();
        assert!(!failure.message.contains("launch codes"), "{}", failure.message);
        let heard = failure.unredacted.unwrap();
        assert!(heard.contains("launch codes") && heard.contains("oops"), "{heard}");
    }
}

#[test]
fn no_match_is_a_valid_answer() {
    check("grep", ended(Ending::Exited(1), "", ""), Ok(""));
    check("grep", ended(Ending::Exited(1), "", "oops"), Err((Reason::CommandFailed, "oops")));
    check("grep", ended(Ending::Exited(2), "", ""), Err((Reason::CommandFailed, "exit code 2")));
    check("ls", ended(Ending::Exited(1), "", ""), Err((Reason::CommandFailed, "exit code 1")));
}

#[test]
fn denials_are_reported_with_their_remedy() {
    let mut with = ended(Ending::Exited(1), "", "cannot open");
    with.refused = vec![
        Denial::Path { path: PathBuf::from("/etc/x\n"), access: Attempt::Read },
        not_listed("example.com:443"),
        Denial::Other("system call `ptrace`".into()),
    ]
    .into();
    check(
        "echo",
        with.clone(),
        Err((
            Reason::CommandFailed,
            "`echo` ended with exit code 1: cannot open; the jail refused: reaching `example.com:443`, reading `/etc/x\\n`, system call `ptrace`; add the host to `network.allowedHosts`",
        )),
    );
    // Denials that the command mentions come first; those that cannot be granted are only in the journal.
    let path = |path: &str| Denial::Path { path: PathBuf::from(path), access: Attempt::Read };
    let mut noisy = ended(Ending::Exited(1), "", "cannot open /data/x");
    noisy.refused =
        vec![path("/sys/kernel/mm"), path("/proc/1/maps"), path("/etc/gai.conf"), path("/data/x")].into();
    let message = "cannot open /data/x; the jail refused: reading `/data/x`, reading `/etc/gai.conf`; add";
    check("echo", noisy, Err((Reason::CommandFailed, message)));
    // The denials of a successful command are only in the journal.
    with.ending = Ending::Exited(0);
    let world = World::new();
    let (tool, _) = world.recorded(&manifest("echo", "'{text}'"), with);
    let report = call(&tool, &json!({ "text": "x" })).unwrap();
    assert!(report.outcome.is_ok());
    assert_eq!(report.refused.len(), 3);
    assert_eq!(report.layers, ["recorder"]);
}

/// A wrong remedy would mislead the author.
#[test]
fn remedy_matches_the_denial() {
    let world = World::new();
    let blocked = world.root().join("outside/passwd");
    let execution = format!("{{extends: read, execution: {{blockedPaths: ['{}']}}}}", blocked.display());
    let tool = manifest("echo", "'{text}'").replace("{extends: read}", &execution);
    assert!(tool.contains("blockedPaths"), "{tool}");
    let path = |path: PathBuf| Denial::Path { path, access: Attempt::Read };
    let host = |why| Denial::Host { target: "example.com:25".to_owned(), why };
    for (refused, remedy) in [
        (host(HostDenial::NotListed), Some("add the host to `network.allowedHosts`")),
        (host(HostDenial::Blocked), Some("a pattern in `network.blockedHosts` covers the host")),
        (host(HostDenial::BlockedPort), Some("`network.blockedPorts` lists it")),
        (host(HostDenial::Metadata), Some("`network.blockMetadata: false`")),
        (host(HostDenial::Private), Some("`network.blockPrivateIPs: false`")),
        (host(HostDenial::Gateway), Some("no tool may call the gateway")),
        (host(HostDenial::ProxyBypassed), Some("only the proxy can reach hosts")),
        (host(HostDenial::Other), None),
        (Denial::Socket("system call `socket` (AF_INET)".to_owned()), Some("`network.access: limited`")),
        (path(PathBuf::from("/etc/shadow")), Some("some of it is blocked for this tool")),
        (path(blocked.clone()), Some("some of it is blocked for this tool")),
        (path(PathBuf::from("/opt/data")), Some("add the path to `execution.allowedPaths`")),
        (
            Denial::Path { path: world.root().join("workspace/x.sh"), access: Attempt::Execute },
            Some("programs in granted directories cannot be run"),
        ),
    ] {
        let failed =
            CommandOutcome { refused: vec![refused.clone()].into(), ..ended(Ending::Exited(1), "", "no") };
        let (tool, _) = world.recorded(&tool, failed);
        let message = call(&tool, &json!({ "text": "x" })).unwrap().outcome.unwrap_err().message;
        let told = format!("; the jail refused: {}", refused.describe());
        let rest = message.split_once(&told).unwrap_or_else(|| panic!("{message}")).1;
        match remedy {
            Some(remedy) => assert!(rest.contains(remedy), "{message}"),
            None => assert_eq!(rest, ""),
        }
        let sends_to_lists = ["add the path", "add the host"].iter().any(|words| rest.contains(words));
        assert_eq!(sends_to_lists, remedy.is_some_and(|remedy| remedy.starts_with("add")), "{message}");
    }
}

/// The most common case is a client that retries a denied host until its deadline.
#[test]
fn denials_are_reported_for_every_kind_of_failure() {
    let host = "; the jail refused: reaching `example.com:443`";
    for (ending, reason) in [
        (Ending::Exited(1), Reason::CommandFailed),
        (Ending::Signalled(9), Reason::CommandFailed),
        (Ending::Signalled(24), Reason::Timeout),
        (Ending::TimedOut, Reason::Timeout),
        (Ending::OutOfMemory, Reason::Memory),
        (Ending::OutputTooLarge, Reason::ResultTooLarge),
    ] {
        let mut with = ended(ending, "", "");
        with.refused = vec![not_listed("example.com:443")].into();
        check("echo", with, Err((reason, host)));
    }
}

/// `stat` calls are not observed. Paths in a manifest are looked up on the host; those of a caller are not, because
/// that would reveal which files exist.
#[test]
fn missing_path_is_reported_if_its_author_wrote_it() {
    let world = World::new();
    let outside = world.root().join("outside").display().to_string();
    let tool = |args: &str| {
        format!(
            "
name: tried
description: Is tried. Returns text.
classification: read
input: {{type: object, properties: {{text: {{type: string}}}}}}
testInput: {{}}
handler: {{cli: {{command: echo, args: [{args}, {{when: text, args: ['{{text}}']}}]}}}}
capability: {{execution: {{sandbox: process, allowedPaths: [$WORKSPACE]}}}}
"
        )
    };
    let told_in = |sandbox: &str, args: &str, text: &str, missing: &str, code: u8| {
        let complaint = format!("ls: cannot access '{missing}': No such file or directory\n");
        let tool = tool(args).replace("sandbox: process", &format!("sandbox: {sandbox}"));
        let (tool, _) = world.recorded(&tool, ended(Ending::Exited(code), "", &complaint));
        let report = call(&tool, &json!({ "text": text })).unwrap();
        (report.refused, report.outcome.err().map(|failure| failure.message).unwrap_or_default())
    };
    let told =
        |args: &str, text: &str, missing: &str, code: u8| told_in("process", args, text, missing, code);
    let refused = format!("reading `{outside}`");
    // `none` also gets the jail. A container has its own paths.
    assert_eq!(told_in("none", &outside, "x", &outside, 2).0, [refused.as_str()]);
    assert_eq!(told_in("container", &outside, "x", &outside, 2).0, [""; 0]);
    for missing in [outside.clone(), format!("{outside}/passwd")] {
        let (journal, message) = told(&outside, "x", &missing, 2);
        assert_eq!(journal, [refused.as_str()], "{missing}");
        assert!(message.contains(&format!("; the jail refused: {refused}; add the path to")), "{message}");
    }
    assert_eq!(told(&outside, "x", &outside, 0).0, [""; 0]);
    assert_eq!(told("/absent/anywhere", "x", "/absent/anywhere", 2).0, [""; 0]);
    assert_eq!(told(&world.at("docs"), "x", &world.at("docs"), 2).0, [""; 0]);
    let (journal, message) = told("x", &outside, &outside, 2);
    assert_eq!(journal, [""; 0]);
    assert!(!message.contains("refused") && !message.contains("allowedPaths"), "{message}");
}

/// A shell like the shipped one: in a container, whatever the document says.
#[track_caller]
fn check_in_a_container(ending: Ending, expect: Result<(), &str>) {
    let world = World::new();
    let mut with = ended(ending, "", "cannot write");
    with.refused = vec![
        Denial::Other("more than 7 processes (one was not started)".into()),
        Denial::Bounds("no network, nothing writable but `/w`".into()),
    ]
    .into();
    let (tool, _) = world.recorded(&crate::catalog::manifest("bash"), with);
    let report = call(&tool, &json!({ "command": "x" })).unwrap();
    let lack =
        "denials in a container cannot be observed; it has no network, nothing writable but `/w`".to_owned();
    assert_eq!(report.refused.contains(&lack), expect.is_err(), "{:?}", report.refused);
    match (report.outcome, expect) {
        (Ok(_), Ok(())) => {}
        (Err(failure), Err(part)) => {
            assert!(failure.message.contains(part), "{}", failure.message);
            let lack =
                "; denials in a container cannot be observed: it has no network, nothing writable but `/w`";
            assert!(failure.message.contains(lack), "{}", failure.message);
            assert!(failure.message.contains("refused: more than 7 processes"), "{}", failure.message);
        }
        (outcome, expect) => panic!("{outcome:?}, not {expect:?}"),
    }
}

#[test]
fn failure_in_a_container_describes_its_limits() {
    check_in_a_container(Ending::Exited(1), Err("exit code 1: cannot write; the jail refused"));
    check_in_a_container(Ending::Exited(126), Err("exit code 126 (the program cannot be run"));
    check_in_a_container(Ending::Exited(127), Err("exit code 127 (the program does not exist"));
    check_in_a_container(Ending::Exited(137), Err("exit code 137 (terminated by signal 9)"));
    check_in_a_container(Ending::Exited(0), Ok(()));
}

#[test]
fn invalid_json_is_unreadable_output() {
    let tool = manifest("echo", "'{text}'").replace("    command:", "    output: json\n    command:");
    let world = World::new();
    let (tool, _) = world.recorded(&tool, said("not json"));
    let failure = call(&tool, &json!({ "text": "x" })).unwrap().outcome.unwrap_err();
    assert_eq!(failure.reason, Reason::OutputUnreadable);
}

#[test]
fn time_and_size_limits_come_from_manifest_and_policy() {
    let order = World::new().order(&manifest("echo", "'{text}'"), &json!({ "text": "x" }));
    // Only the time for checking the tree is deducted.
    assert!((1_000..=10_000).contains(&order.deadline.as_millis()), "{:?}", order.deadline);
    assert_eq!(order.limits.cpu_seconds, 11);
    assert_eq!(order.limits.stdout_bytes, 4_000_000);
    assert_eq!(order.limits.stderr_bytes, 64 << 10);
    assert_eq!(order.limits.memory_bytes, 512 << 20);
    let short = manifest("echo", "'{text}'").replace("    command:", "    timeout: 700\n    command:");
    let order = World::new().order(&short, &json!({ "text": "x" }));
    assert!((1..=700).contains(&order.deadline.as_millis()), "{:?}", order.deadline);
    assert_eq!(order.limits.cpu_seconds, 2);
}

/// A command was killed after 30 s although every page said 60 or 120.
#[test]
fn displayed_timeout_is_enforced() {
    let with = |capability: &str| {
        let manifest = manifest("echo", "'{text}'");
        assert!(manifest.contains("capability: {extends: read}"), "{manifest}");
        manifest.replace("capability: {extends: read}", capability)
    };
    let own = |ms: u64, capability: &str| {
        with(capability).replace("    command:", &format!("    timeout: {ms}\n    command:"))
    };
    let (allowed, silent) = (
        "capability: {execution: {timeout: 120000, allowedPaths: [$WORKSPACE]}}",
        "capability: {execution: {allowedPaths: [$WORKSPACE]}}",
    );
    let in_operators_words = |ms: u64| {
        let text = format!("tools: {{tried: {{capability: {{execution: {{timeout: {ms}}}}}}}}}");
        Some(UserOverrides::parse(&text, Format::Yaml).unwrap())
    };
    for (manifest, user, shown) in [
        (with(silent), None, 30_000),
        (with("capability: {extends: read}"), None, 10_000),
        (with("policy: {approval: ask}"), None, 60_000),
        (with(allowed), None, 120_000),
        (with(silent), in_operators_words(120_000), 120_000),
        (with(silent), in_operators_words(5_000), 5_000),
        (own(700, silent), None, 700),
        (own(45_000, silent), None, 45_000),
        (own(45_000, silent), in_operators_words(120_000), 45_000),
        (own(45_000, silent), in_operators_words(5_000), 5_000),
        (own(700, allowed), None, 700),
    ] {
        let world = World::new();
        let (spec, _) = resolve(&manifest);
        let policy =
            toolgate_policy::resolve(&spec, PolicySet::shipped().as_ref().unwrap(), user.as_ref()).unwrap();
        assert_eq!(policy.execution.timeout_ms.value, shown, "{manifest}");
        let mut enforced = Duration::ZERO;
        let _ = CliTool::new(spec, &policy, &world.host())
            .unwrap()
            .with_limits(|_, deadline| enforced = *deadline);
        assert_eq!(enforced, Duration::from_millis(shown), "{manifest}");
    }
}

/// A tree can have any size.
#[test]
fn slow_path_check_is_a_timeout_and_nothing_runs() {
    let world = World::new();
    let tool = world.load(&manifest("echo", "'{text}'")).unwrap();
    let (_, recorder) = world.recorded(&manifest("echo", "'{text}'"), said("hello"));
    let launcher = Arc::clone(&recorder) as Arc<dyn Launch>;
    let tool = world.handlers(launcher).runnable(tool.with_limits(|_, deadline| *deadline = Duration::ZERO));
    let failure = call(&tool, &json!({ "text": "x" })).unwrap().outcome.unwrap_err();
    assert_eq!(failure.reason, Reason::Timeout, "{}", failure.message);
    assert!(failure.message.contains("did not start"), "{}", failure.message);
    assert!(recorder.is_unused());
}
