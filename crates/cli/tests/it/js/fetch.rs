//! `fetch` against real servers: requests, responses, redirects and timeouts.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
    thread,
};

use serde_json::{Value, json};
use toolgate_gate::RunReport;

use crate::gateway::{Gateway, NoSecrets, document};

/// Runs `code` with access to the server; `SERVER` in it is replaced by the origin.
fn run(gateway: &Gateway, server: &str, code: &str) -> RunReport {
    let mut tool = document(&code.replace("SERVER", server));
    tool["sandboxOverrides"] = json!({ "networkMode": "allowlist", "hostsAllow": ["127.0.0.1"] });
    gateway.run(&gateway.tool(&tool), &json!({}), &NoSecrets)
}

#[track_caller]
fn check(gateway: &Gateway, server: &str, code: &str, expected: &Value) {
    match run(gateway, server, code).outcome {
        Ok(Some(value)) => assert_eq!(&value, expected, "{code}"),
        other => panic!("{code}: {other:?}"),
    }
}

/// A server that answers by path and returns the head and body of each request.
fn serve(answer: fn(&str) -> &'static str) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let _ = tell.send((head, body));
            let _ = reader.into_inner().write_all(answer(&path).as_bytes());
        }
    });
    (server, told)
}

/// Header names are sent in lower case, where the detector would not recognise a key.
#[test]
fn key_as_method_or_header_name_does_not_leave() {
    let gateway = Gateway::new();
    let (server, told) = serve(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    for options in [
        "{ method: key }",
        "{ headers: { [`X-${key}`]: '1' } }",
        "{ headers: new Headers(new Headers([[key, '1']])) }",
        "{ headers: (() => { const own = new Headers(); own.set(key, '1'); return own })() }",
    ] {
        let code = format!(
            "const key = 'AKIA' + 'Q3EGRFLWZ7XKTN2P';\n\
             try {{ await fetch('SERVER/', {options}); return 'sent' }} catch (error) {{ return error.reason }}"
        );
        check(&gateway, &server, &code, &json!("content-refused"));
    }
    assert!(told.try_recv().is_err(), "nothing was sent");
}

#[test]
fn body_is_read_page_by_page() {
    let gateway = Gateway::new();
    let (server, _told) = serve(
        |_| "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\nconnection: close\r\n\r\n0123456789\n",
    );
    let pages = "const pages = [];\n\
        let from = 0;\n\
        while (from !== null) {\n\
          const page = fetch('SERVER/', { startIndex: from, maxLength: 4 });\n\
          pages.push([page.text(), page.truncated, page.nextStartIndex]);\n\
          from = page.nextStartIndex;\n\
        }\n\
        return pages";
    let expected = json!([["0123", true, 4], ["4567", true, 8], ["89\n", false, null]]);
    check(&gateway, &server, pages, &expected);
    for (options, expected) in [
        ("{}", json!(["0123456789\n", false, null])),
        ("{ maxLength: 0 }", json!(["0123456789\n", false, null])),
        ("{ maxLength: 11 }", json!(["0123456789\n", false, null])),
        ("{ startIndex: 9 }", json!(["9\n", false, null])),
        ("{ startIndex: 11 }", json!(["", false, null])),
        ("{ startIndex: 99, maxLength: 1 }", json!(["", false, null])),
    ] {
        let code = format!(
            "const r = fetch('SERVER/', {options}); return [r.text(), r.truncated, r.nextStartIndex]"
        );
        check(&gateway, &server, &code, &expected);
    }
}

#[test]
fn redirects_are_followed_shown_or_refused_as_asked() {
    let gateway = Gateway::new();
    let (server, told) = serve(|path| match path {
        "/from" => "HTTP/1.1 302 x\r\nlocation: /to\r\ncontent-length: 4\r\nconnection: close\r\n\r\nmove",
        _ => {
            "HTTP/1.1 404 x\r\ncontent-type: text/plain;charset=utf-8\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno"
        }
    });
    let members = "r.status, r.ok, r.statusText, r.url, r.redirected, r.contentType, r.headers.get('Location'), r.text()";
    let to = json!([
        404,
        false,
        "Not Found",
        format!("{server}/to"),
        true,
        "text/plain;charset=utf-8",
        null,
        "no"
    ]);
    for options in ["{}", "{ redirect: 'follow' }"] {
        check(
            &gateway,
            &server,
            &format!("const r = fetch('SERVER/from', {options}); return [{members}]"),
            &to,
        );
    }
    assert_eq!(told.try_iter().count(), 4);
    let from = json!([302, false, "Found", format!("{server}/from"), false, null, "/to", "move"]);
    let manual = format!("const r = fetch('SERVER/from', {{ redirect: 'manual' }}); return [{members}]");
    check(&gateway, &server, &manual, &from);
    let refused = "try { fetch('SERVER/from', { redirect: 'error' }) } catch (e) { return [e.name, e.kind, e.helper, e.reason] }";
    check(&gateway, &server, refused, &json!(["ToolError", "HELPER_RUNTIME", "fetch", "redirect-refused"]));
    assert_eq!(told.try_iter().count(), 2, "neither went on to where it was led");
}

#[test]
fn bodies_arrive_with_their_content_types() {
    let gateway = Gateway::new();
    let (server, told) = serve(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let form = "application/x-www-form-urlencoded;charset=UTF-8";
    for (body, kind, sent) in [
        ("new URLSearchParams({ a: '1 2', b: 'ü' })", Some(form), b"a=1+2&b=%C3%BC".as_slice()),
        ("Uint8Array.of(0, 255, 10)", None, &[0, 255, 10]),
        ("Uint8Array.of(1, 2, 3, 4).subarray(1, 3)", None, &[2, 3]),
        ("Uint8Array.of(7).buffer", None, &[7]),
        ("[104, 105]", None, b"hi"),
        ("'a\\ud800b'", None, "a\u{fffd}b".as_bytes()),
    ] {
        let code = format!("return fetch('SERVER/', {{ method: 'POST', body: {body} }}).status");
        check(&gateway, &server, &code, &json!(200));
        let (head, arrived) = told.recv().unwrap();
        assert_eq!(arrived, sent, "{body}");
        let told = head.lines().find_map(|line| line.strip_prefix("content-type: "));
        assert_eq!(told, kind, "{body}: {head}");
    }
    for method in ["GET", "HEAD"] {
        let code = format!("return fetch('SERVER/', {{ method: '{method}', body: 'dropped' }}).status");
        check(&gateway, &server, &code, &json!(200));
        assert_eq!(told.recv().unwrap().1, b"", "{method}");
    }
}

/// The server accepts connections and never answers.
#[test]
fn timeout_ends_a_request_to_a_silent_server() {
    let gateway = Gateway::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    for (signal, name) in [
        ("AbortSignal.timeout(100)", "TimeoutError"),
        ("AbortSignal.any([new AbortController().signal, AbortSignal.timeout(100)])", "TimeoutError"),
        ("AbortSignal.timeout(0)", "TimeoutError"),
        ("AbortSignal.abort()", "AbortError"),
    ] {
        let code = format!(
            "const signal = {signal};\n\
             try {{ await fetch('SERVER/silent', {{ signal }}) }} catch (e) {{\n\
               return [e.name, e.kind, e.helper, e.reason, e === signal.reason, signal.aborted]\n\
             }}"
        );
        let expected = json!([name, "HELPER_RUNTIME", "fetch", "aborted", true, true]);
        check(&gateway, &server, &code, &expected);
    }
    // Uncaught, it is an ordinary helper error, and the attempt is recorded.
    let report = run(&gateway, &server, "fetch('SERVER/silent', { signal: AbortSignal.timeout(1000) })");
    let failure = report.outcome.unwrap_err();
    let helper = failure.helper.unwrap();
    assert_eq!((helper[0].as_str(), helper[2].as_str()), ("HELPER_RUNTIME", "aborted"));
    assert_eq!(report.effects.len(), 1);
    assert_eq!(report.effects[0].outcome, "HELPER_RUNTIME aborted");
    gateway.still_serves();
}

#[test]
fn aborted_signal_sends_nothing() {
    let gateway = Gateway::new();
    let (server, told) = serve(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let code = "const signal = AbortSignal.timeout(1);\n\
        await new Promise((resolve) => setTimeout(resolve, 5));\n\
        for (const over of [signal, AbortSignal.abort(), AbortSignal.any([signal])]) {\n\
          try { fetch('SERVER/', { signal: over }); return 'sent' } catch {}\n\
        }\n\
        return fetch('SERVER/', { signal: AbortSignal.timeout(20000) }).status";
    let report = run(&gateway, &server, code);
    assert_eq!(report.outcome.unwrap(), Some(json!(200)));
    assert_eq!(report.effects.len(), 1);
    assert_eq!(told.try_iter().count(), 1);
}
