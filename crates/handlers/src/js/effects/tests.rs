use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use toolgate_egress::{EgressLimits, EgressMode, Guard, HostRule, Listeners, SystemResolver, TlsRoots};

use super::*;

/// Answers every request by its path, or closes the connection.
fn serve(answer: fn(&str) -> Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap_or(0) == 0 {
                    break;
                }
                head.extend(byte);
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default();
            if let Some(answer) = answer(path) {
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    format!("http://{address}")
}

fn effects(methods_to_ask_for: &[&str]) -> CallEffects {
    let resolver = SystemResolver::with_servers(&[]).unwrap();
    // Roots that sign nothing; these tests do not use TLS.
    let signed = rcgen::generate_simple_self_signed(vec!["nobody.test".to_owned()]).unwrap();
    let roots = TlsRoots::Pem(signed.cert.pem().into_bytes());
    let rules = EgressRules {
        mode: EgressMode::Open,
        hosts: vec![HostRule::ANY],
        blocked_hosts: Vec::new(),
        blocked_ports: Vec::new(),
        guard_private: Guard::Off,
        guard_metadata: Guard::On,
    };
    let scope = EffectScope {
        egress: Some(
            Egress::new(Arc::new(resolver), &roots, EgressLimits::default(), Listeners::of_this_process())
                .unwrap(),
        ),
        rules: Arc::new(rules),
        methods_to_ask_for: methods_to_ask_for.iter().map(|method| (*method).to_owned()).collect(),
        files: None,
        judged: Arc::from([]),
        redactor: None,
        disk_checks: DiskCheckPermits::default(),
        caller: "tester".to_owned(),
    };
    CallEffects::new(scope, &[], Duration::from_mins(1))
}

fn call(url: String, headers: &[(&str, &str)]) -> FetchCall {
    FetchCall {
        method: "POST".to_owned(),
        url,
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        body: None,
        redirect: Redirect::Follow,
        timeout_ms: 0,
        start_index: 0,
        max_length: 0,
    }
}

fn fetch(effects: &mut CallEffects, url: String, headers: &[(&str, &str)]) -> EffectAnswer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(effects.perform(Effect::Fetch(call(url, headers))))
}

/// The target and outcome of each record.
fn told(mut effects: CallEffects) -> Vec<(String, String)> {
    effects.take_records().into_iter().map(|record| (record.target, record.outcome)).collect()
}

#[test]
fn redirects_are_recorded_also_when_they_fail() {
    let server = serve(|path| {
        (path == "/")
            .then_some("HTTP/1.1 307 x\r\nlocation: /lost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    });
    let mut lost = effects(&[]);
    let EffectAnswer::Refused(error) = fetch(&mut lost, format!("{server}/"), &[]) else {
        panic!("it was answered")
    };
    let outcome = format!("{} {}", error.kind, error.reason);
    assert_eq!(told(lost), [(format!("{server}/"), "307".to_owned()), (format!("{server}/lost"), outcome)]);
    let server = serve(|_| {
        Some("HTTP/1.1 307 x\r\nlocation: /again\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    });
    let mut endless = effects(&[]);
    fetch(&mut endless, format!("{server}/"), &[]);
    let again = |outcome: &str| (format!("{server}/again"), outcome.to_owned());
    let mut expected = vec![(format!("{server}/"), "307".to_owned())];
    expected.extend(vec![again("307"); EgressLimits::default().redirects]);
    expected.push(again("SECURITY too-many-redirects"));
    assert_eq!(told(endless), expected);
}

/// The request reached the first server, and the denied one is named.
#[test]
fn denied_redirect_is_recorded_with_its_target() {
    let server = serve(|path| match path {
        "/host" => {
            Some("HTTP/1.1 307 x\r\nlocation: http://other.test/in?key=1#f\r\ncontent-length: 0\r\n\r\n")
        }
        "/user" => Some("HTTP/1.1 307 x\r\nlocation: http://me:pw@other.test/\r\ncontent-length: 0\r\n\r\n"),
        "/scheme" => Some("HTTP/1.1 307 x\r\nlocation: ftp://other.test/in\r\ncontent-length: 0\r\n\r\n"),
        _ => Some("HTTP/1.1 307 x\r\nlocation: http://\r\ncontent-length: 0\r\n\r\n"),
    });
    for (path, refused, outcome) in [
        ("/host", "http://other.test/in", "SECURITY host-not-in-allowlist"),
        ("/user", "http://other.test/", "SECURITY userinfo-in-url"),
        ("/scheme", "ftp://other.test/in", "SECURITY unsupported-scheme"),
    ] {
        let mut listing = effects(&[]);
        let hosts = vec![HostRule::exact("127.0.0.1".to_owned())];
        listing.scope.rules =
            Arc::new(EgressRules { mode: EgressMode::Allowlist, hosts, ..EgressRules::blocked() });
        fetch(&mut listing, format!("{server}{path}"), &[]);
        let sent = (format!("{server}{path}"), "307".to_owned());
        assert_eq!(told(listing), [sent, (refused.to_owned(), outcome.to_owned())], "{path}");
    }
    // A redirect without a target is recorded under the server that sent it.
    let mut nowhere = effects(&[]);
    fetch(&mut nowhere, format!("{server}/nowhere"), &[]);
    let outcome = "HELPER_RUNTIME invalid-redirect".to_owned();
    assert_eq!(told(nowhere), [(format!("{server}/nowhere"), outcome)]);
}

#[test]
fn every_hop_has_its_status_and_the_last_one_the_bytes() {
    let server = serve(|path| match path {
        "/" => Some("HTTP/1.1 302 x\r\nlocation: /end?key=1\r\ncontent-length: 0\r\n\r\n"),
        _ => Some("HTTP/1.1 200 x\r\ncontent-length: 5\r\n\r\nhello"),
    });
    let mut led = effects(&[]);
    fetch(&mut led, format!("{server}/"), &[]);
    let records = led.take_records();
    let told: Vec<_> =
        records.iter().map(|record| (&record.target, record.outcome.as_str(), record.bytes)).collect();
    assert_eq!(told, [(&format!("{server}/"), "302", 0), (&format!("{server}/end"), "200", 5)]);
}

/// Redirects to a server that accepts the request and never answers.
fn serve_silence() -> String {
    serve(|path| match path {
        "/" => Some("HTTP/1.1 307 x\r\nlocation: /silent\r\ncontent-length: 0\r\n\r\n"),
        _ => loop {
            thread::park();
        },
    })
}

#[track_caller]
fn check_silence(server: &str, effects: CallEffects, outcome: &str) {
    let first = (format!("{server}/"), "307".to_owned());
    assert_eq!(told(effects), [first, (format!("{server}/silent"), outcome.to_owned())]);
}

#[test]
fn hop_at_the_timeout_is_recorded() {
    let (server, mut hurried) = (serve_silence(), effects(&[]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = FetchCall { timeout_ms: 3_000, ..call(format!("{server}/"), &[]) };
    runtime.block_on(hurried.perform(Effect::Fetch(limited)));
    check_silence(&server, hurried, "HELPER_RUNTIME aborted");
}

#[test]
fn hop_of_a_dropped_request_is_recorded() {
    let (server, mut dropped) = (serve_silence(), effects(&[]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let begun = dropped.perform(Effect::Fetch(call(format!("{server}/"), &[])));
    let late = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(3), begun).await });
    assert!(late.is_err());
    check_silence(&server, dropped, "interrupted");
}

#[test]
fn header_does_not_override_the_checked_method() {
    let server = serve(|_| Some("HTTP/1.1 200 x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
    for (header, value) in [
        ("X-HTTP-Method-Override", "DELETE"),
        ("x-http-method", "PUT, delete"),
        ("X_Method_Override", "Delete"),
    ] {
        let mut asking = effects(&["DELETE"]);
        let EffectAnswer::Refused(error) = fetch(&mut asking, format!("{server}/"), &[(header, value)])
        else {
            panic!("{header} was sent")
        };
        assert_eq!(error.reason, "method-needs-approval", "{header}");
    }
    let mut asking = effects(&["DELETE"]);
    let sent =
        fetch(&mut asking, format!("{server}/"), &[("X-HTTP-Method-Override", "PUT"), ("X-Other", "DELETE")]);
    assert!(matches!(sent, EffectAnswer::Fetched(_)), "{sent:?}");
}

/// A header or body with a secret does not follow a redirect to another origin, in any encoding.
#[test]
fn encoded_secret_in_header_or_body_is_reported_to_egress() {
    let mask = Mask::new(&["Hunter2/(Sesame)!*'~42".to_owned()]);
    let headers = [
        ("x-plain", "Hunter2/(Sesame)!*'~42"),
        ("x-query", "k=Hunter2/(Sesame)!*%27~42"),
        ("x-form", "k=Hunter2%2F%28Sesame%29%21*%27%7E42"),
        ("x-quoted", r"Hunter2/(Sesame)!*\'~42"),
        ("accept-language", "en"),
    ];
    let sent = request(call("https://h.test/".to_owned(), &headers), &mask);
    assert_eq!(sent.sensitive_headers, ["x-plain", "x-query", "x-form", "x-quoted"]);
    assert_eq!(sent.body_holds, BodyHolds::Data);
    let form = FetchCall {
        body: Some(b"k=Hunter2%2F%28Sesame%29%21*%27%7E42".to_vec()),
        ..call("https://h.test/".to_owned(), &[])
    };
    assert_eq!(request(form, &mask).body_holds, BodyHolds::Secrets);
}

/// The whole address of a webhook can be a secret.
#[test]
fn secret_with_a_query_is_masked_before_the_query_is_cut() {
    let mut own_secrets = effects(&[]);
    own_secrets.secrets = vec!["https://h.test/hook/T0?sig=abcd1234".to_owned()];
    let answer = fetch(&mut own_secrets, "https://h.test/hook/T0?sig=abcd1234".to_owned(), &[]);
    assert!(matches!(answer, EffectAnswer::Refused(_)), "{answer:?}");
    assert_eq!(own_secrets.take_records()[0].target, "***");
}

/// A truncated body is not passed on, but it was fetched.
#[test]
fn received_bytes_count_also_on_failure() {
    let server = serve(|path| match path {
        "/cut" => Some("HTTP/1.1 200 x\r\ncontent-length: 10\r\nconnection: close\r\n\r\nhello"),
        "/whole" => Some("HTTP/1.1 200 x\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello"),
        _ => None,
    });
    let mut counting = effects(&[]);
    for (path, arrived) in [("/cut", 5), ("/cut", 5), ("/none", 0)] {
        let EffectAnswer::Refused(error) = fetch(&mut counting, format!("{server}{path}"), &[]) else {
            panic!("it was answered")
        };
        assert_eq!(error.moved, arrived, "{path}: {}", error.reason);
    }
    let whole = fetch(&mut counting, format!("{server}/whole"), &[]);
    assert!(matches!(&whole, EffectAnswer::Fetched(answer) if answer.full_length == 5), "{whole:?}");
}
