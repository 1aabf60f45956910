//! Tests the shipped commands for programs that are not installed here, with stand-ins that record their input.

use std::{fs, sync::Arc};

use serde_json::{Value, json};
use toolgate_handlers::CliTool;
use toolgate_spec::model::{Body, Handler};

use crate::{
    catalog::{fits, manifest},
    world::{Unjailed, World, call, resolve, with_command},
};

/// The input of the stand-in, and the result of the tool.
#[track_caller]
fn run(name: &str, arguments: &Value, answer: &str) -> (Vec<String>, Vec<String>, Value) {
    let mut world = World::new();
    for secret in ["ARGOCD_TOKEN", "LOKI_TOKEN"] {
        world.secrets.insert(secret.to_owned(), format!("{secret}-value"));
    }
    let text = manifest(name);
    assert!(fits(&text, arguments), "{arguments}");
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$0.argv\"\nenv > \"$0.env\"\ncat \"$0.answer\"\n";
    let (spec, policy) = resolve(&text);
    let Body::Handler(Handler::Cli(cli)) = &spec.body else { panic!("a command") };
    // Under its own name, which selects the conventions.
    let command = cli.command.clone();
    let program = world.program(&command, script, 0o755);
    world.write(&format!("bin/{command}.answer"), answer);
    let tool = CliTool::new(with_command(&spec, &program), &policy, &world.host()).unwrap();
    let tool = world.handlers(Arc::new(Unjailed)).runnable(tool);
    let value = call(&tool, arguments).unwrap().outcome.unwrap().unwrap();
    let lines = |end: &str| {
        let text = fs::read_to_string(world.root().join(format!("bin/{command}.{end}"))).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    (lines("argv"), lines("env"), value)
}

#[track_caller]
fn check(name: &str, arguments: &Value, answer: &str, expect: &[&str]) -> Value {
    let (argv, env, value) = run(name, arguments, answer);
    assert_eq!(argv, expect);
    assert!(!argv.iter().any(|element| element.contains("_TOKEN-value")), "a secret in the arguments");
    assert!(env.iter().any(|line| line == "HOME=/tmp"));
    value
}

#[test]
fn pods() {
    let answer =
        r#"{"items": [{"metadata": {"name": "web-0"}, "spec": {}, "status": {"phase": "Running"}}]}"#;
    let input = json!({ "namespace": "staging", "app": "web", "phase": "Running" });
    let value = check(
        "k8s_get_pods",
        &input,
        answer,
        &[
            "get",
            "pods",
            "--namespace=staging",
            "--selector=app=web",
            "--field-selector=status.phase=Running",
            "--output=json",
            "--request-timeout=15s",
            "--cache-dir=/tmp",
        ],
    );
    assert_eq!(value["items"][0]["metadata"]["name"], "web-0");
    let (_, env, _) = run("k8s_get_pods", &json!({ "namespace": "default" }), answer);
    assert!(env.contains(&"KUBECONFIG=/etc/toolgate/kube/config".to_owned()));
}

#[test]
fn events() {
    check(
        "k8s_get_events",
        &json!({ "namespace": "default", "type": "Warning" }),
        r#"{"items": []}"#,
        &[
            "get",
            "events",
            "--namespace=default",
            "--field-selector=type=Warning",
            "--sort-by=.lastTimestamp",
            "--output=json",
            "--request-timeout=15s",
            "--cache-dir=/tmp",
        ],
    );
}

#[test]
fn logs_of_a_pod() {
    let input = json!({
        "namespace": "production", "pod": "web-0", "container": "app", "lines": 10, "minutes": 5, "previous": true
    });
    let value = check(
        "k8s_get_logs",
        &input,
        "2026-01-01T00:00:00Z \x1b[32mok\x1b[0m\n",
        &[
            "logs",
            "--namespace=production",
            "--container=app",
            "--tail=10",
            "--since=5m",
            "--previous",
            "--timestamps",
            "--limit-bytes=200000",
            "--request-timeout=15s",
            "--cache-dir=/tmp",
            "--",
            "web-0",
        ],
    );
    assert_eq!(value, json!("2026-01-01T00:00:00Z ok\n"));
}

#[test]
fn applications() {
    let app = json!({ "app": "storefront" });
    let answer = r#"{"metadata": {"name": "storefront"}, "spec": {}, "status": {"sync": {"status": "Synced", "revision": "abc"}}}"#;
    let get =
        ["app", "get", "--output=json", "--server=argocd.internal.example", "--grpc-web", "--", "storefront"];
    assert_eq!(check("argocd_get_app", &app, answer, &get)["metadata"]["name"], "storefront");
    let status = check("argocd_get_sync_status", &app, answer, &get);
    assert_eq!(status, json!({ "status": "Synced", "revision": "abc" }));
    let diff = [
        "app",
        "diff",
        "--exit-code=false",
        "--server=argocd.internal.example",
        "--grpc-web",
        "--",
        "storefront",
    ];
    check("argocd_diff", &app, "", &diff);
    let (_, env, _) = run("argocd_diff", &app, "");
    assert!(env.contains(&"ARGOCD_AUTH_TOKEN=ARGOCD_TOKEN-value".to_owned()));
}

#[test]
fn logs_by_query() {
    let value = check(
        "query_logs",
        &json!({ "namespace": "production", "contains": "out of memory", "hours": 2, "limit": 10 }),
        "{\"line\": \"out of \\u001b[1mmemory\", \"timestamp\": \"t\"}\n{\"line\": \"b\"}\n",
        &[
            "query",
            "--quiet",
            "--output=jsonl",
            "--since=2h",
            "--limit=10",
            "--",
            "{namespace=\"production\"} |= \"out of memory\"",
        ],
    );
    assert_eq!(value, json!({ "result": [{ "line": "out of memory", "timestamp": "t" }, { "line": "b" }] }));
}

/// Anyone can write to a log.
#[test]
fn log_line_does_not_hide_others() {
    let query = json!({ "namespace": "default", "contains": "e", "hours": 1, "limit": 10 });
    let answer = "{\"line\": \"one\u{9d}\"}\n{\"line\": \"here\"}\n{\"line\": \"\u{9c}three\"}\n";
    let (_, _, value) = run("query_logs", &query, answer);
    assert_eq!(value, json!({ "result": [{ "line": "one" }, { "line": "here" }, { "line": "three" }] }));
}

/// Otherwise the caller would learn the rest letter by letter.
#[test]
fn match_in_a_secret_of_a_log_is_not_reported() {
    let answered = |contains: &str, answer: &str| {
        let query = json!({ "namespace": "default", "contains": contains, "hours": 1, "limit": 10 });
        run("query_logs", &query, answer).2
    };
    let key = ["sk_live_", "51Hq8Rt5Vw2Xy7Bn4Mk9Lp3Hd6"].concat();
    let line =
        |text: &str| format!("{}\n", json!({ "labels": { "app": "pay" }, "line": text, "timestamp": "t" }));
    let open = line("sk_live_5 is no key");
    for secret in [
        line(&format!("charged with {key}")),
        line(&format!("password = \"{key}\"")),
        line("asked with LOKI_TOKEN-value"),
        // In the spelling of another encoder.
        line(&key).replace("sk_live", "\\u0073k\\u005flive"),
        format!("{}\n", json!({ "line": "x", "labels": { "password": "Zq8Rt5Vw2Xy7" } })),
    ] {
        let nothing = answered("sk_live_6", "");
        assert_eq!(answered("sk_live_5", &secret), nothing, "{secret}");
        let beside = format!("{open}{secret}{open}");
        assert_eq!(
            answered("sk_live_5", &beside),
            answered("sk_live_5", &format!("{open}{open}")),
            "{secret}"
        );
    }
    // A key of several lines, each in a separate record.
    let pem: String =
        [format!("-----BEGIN {} KEY-----", "PRIVATE")]
            .into_iter()
            .chain((0..4).map(|row| {
                "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"[row..].to_owned()
            }))
            .chain([format!("-----END {} KEY-----", "PRIVATE")])
            .map(|text| line(&text))
            .collect();
    assert_eq!(answered("A", &pem), answered("A", ""));
}

#[test]
fn value_that_would_leave_its_place_is_rejected() {
    for (name, input) in [
        ("k8s_get_pods", json!({ "namespace": "kube-system" })),
        ("k8s_get_pods", json!({ "namespace": "default", "app": "web,secret=x" })),
        ("k8s_get_logs", json!({ "namespace": "default", "pod": "deploy/web", "lines": 1 })),
        ("k8s_get_logs", json!({ "namespace": "default", "pod": "web-0\n", "lines": 1 })),
        ("k8s_get_logs", json!({ "namespace": "default", "pod": "web-0", "lines": 501 })),
        ("argocd_get_app", json!({ "app": "--server=evil" })),
        ("argocd_get_app", json!({ "app": "../x" })),
        (
            "query_logs",
            json!({ "namespace": "default", "contains": "\"} or {a=\"b", "hours": 1, "limit": 1 }),
        ),
        ("query_logs", json!({ "namespace": "default", "contains": "a\\", "hours": 1, "limit": 1 })),
        ("query_logs", json!({ "namespace": "default", "contains": "a", "hours": 169, "limit": 1 })),
        ("git_log", json!({ "count": 0 })),
        ("git_log", json!({ "count": 5, "revision": "--all" })),
        ("git_log", json!({ "count": 5, "revision": "a..b" })),
        ("git_show_file", json!({ "revision": "HEAD", "path": "../x" })),
        ("git_show_file", json!({ "revision": "HEAD:x", "path": "y" })),
        ("git_diff_branches", json!({ "base": "main", "head": "x y" })),
    ] {
        assert!(!fits(&manifest(name), &input), "{name} {input}");
    }
}
