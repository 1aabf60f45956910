//! Tools cannot reach the gateway's own listeners by any address or name.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Ipv6Addr, SocketAddr, TcpListener},
    thread,
};

use serde_json::{Value, json};

use crate::place::{Place, Serving, token};

const REFUSED: &str = "leads to this gateway";

/// A workspace whose tools may reach every host, and a gateway with a separate admin listener.
fn open_place() -> Place {
    let place = Place::new();
    place.configure("approvals:\n  ask_from: never\nadmin:\n  listen: 127.0.0.2:0\n");
    place.write_tool(
        "reach",
        &json!({
            "code": "try { return `reached ${(await fetch(url)).status}` } catch (error) { return error.message }",
            "params": [{ "name": "url", "description": "Where to go", "type": "STRING", "required": true, "testValue": "http://127.0.0.1:9/" }],
            "sandboxOverrides": { "networkMode": "open" },
        }),
    );
    place.ok(&["publish", "--yes"]);
    place
}

/// The port of the MCP listener and the address of the admin listener.
fn listeners(serving: &Serving) -> (u16, SocketAddr) {
    let line = serving.wait_for("serving the admin API at http://");
    let (_, rest) = line.split_once("http://").unwrap();
    let mcp = serving.address.rsplit(':').next().unwrap().parse().unwrap();
    (mcp, rest.split('/').next().unwrap().parse().unwrap())
}

/// A server in this process that answers every request with these bytes.
fn server(answer: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

fn redirect_to(url: &str) -> SocketAddr {
    server(format!(
        "HTTP/1.1 307 Elsewhere\r\nlocation: {url}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    ))
}

#[test]
fn javascript_of_the_gateway_itself_does_not_reach_its_listeners() {
    let place = open_place();
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let (mcp, admin) = listeners(&serving);
    let reach = |url: &str| serving.call(&token, "reach", &json!({ "url": url })).to_string();
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"] {
        let answer = reach(&format!("http://{host}:{mcp}/healthz"));
        assert!(answer.contains(REFUSED), "{host}: {answer}");
    }
    for host in ["127.0.0.2", "[::ffff:127.0.0.2]"] {
        let answer = reach(&format!("http://{host}:{}/healthz", admin.port()));
        assert!(answer.contains(REFUSED), "{host}: {answer}");
    }
    for url in [format!("http://127.0.0.1:{mcp}/healthz"), format!("http://{admin}/healthz")] {
        let answer = reach(&format!("http://{}/", redirect_to(&url)));
        assert!(answer.contains(REFUSED), "a redirect to {url}: {answer}");
    }
    let other = server("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned());
    assert!(
        reach(&format!("http://{other}/")).contains("reached 200"),
        "other servers of this host are reached"
    );
    serving.stop();
    let records = place.journal("journal");
    let refused = |record: &&Value| record.to_string().contains("SECURITY gateway-listener");
    assert!(records.iter().any(|record| refused(&record)), "the journal has the reason");
}

/// Also a wildcard listener, which answers at every address of the host.
#[test]
fn other_processes_of_the_workspace_do_not_reach_the_listeners_of_a_running_gateway() {
    let place = open_place();
    let mut cases = vec![
        ("127.0.0.1:0", vec!["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"]),
        ("0.0.0.0:0", vec!["127.0.0.1", "127.8.9.1", "localhost"]),
    ];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        cases.push(("[::]:0", vec!["127.0.0.1", "127.8.9.1", "[::1]", "localhost"]));
        cases.push(("[::1]:0", vec!["[::1]", "[::]"]));
    }
    for (listen, hosts) in cases {
        let serving = Serving::start_with(&place, &["--listen", listen]);
        let (mcp, admin) = listeners(&serving);
        for host in hosts {
            let url = format!("url=http://{host}:{mcp}/healthz");
            for command in [["call", "reach"], ["run", "tools/reach.json"]] {
                let shown = place.ok(&[&command[..], &[&url]].concat());
                assert!(shown.contains(REFUSED), "{listen}, {command:?}, {url}: {shown}");
            }
        }
        let shown = place.ok(&["call", "reach", &format!("url=http://{admin}/healthz")]);
        assert!(shown.contains(REFUSED), "{listen}: {shown}");
        let port = mcp;
        serving.stop();
        // The gateway has ended, and its port is free.
        let shown = place.ok(&["call", "reach", &format!("url=http://127.0.0.1:{port}/")]);
        assert!(!shown.contains(REFUSED), "{listen}: {shown}");
    }
}

#[test]
fn command_does_not_reach_the_listeners_by_proxy_or_by_socket() {
    let place = open_place();
    for (name, more) in [("proxied", ""), ("direct", "--noproxy, '*', ")] {
        let document = format!(
            "name: {name}\n\
             description: Fetches a page, for tests. Returns the page.\n\
             classification: read\n\
             params:\n  - {{name: url, type: STRING, required: true, testValue: 'http://127.0.0.1:9/'}}\n\
             touches: {{connect: [url]}}\n\
             capability:\n  network: {{access: full, blockPrivateIPs: false}}\n\
             handler:\n  cli:\n    command: curl\n    args: [-sS, --max-time, '20', {more}'{{url}}']\n",
        );
        fs::write(place.path().join(format!("tools/{name}.yaml")), document).unwrap();
    }
    let serving = Serving::start(&place);
    let (mcp, admin) = listeners(&serving);
    let run = |tool: &str, url: &str| {
        let output = place.toolgate(&["run", &format!("tools/{tool}.yaml"), &format!("url={url}")]);
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let other = server("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello".to_owned());
    let shown = run("proxied", &format!("http://{other}/"));
    assert!(shown.contains("hello"), "the proxy leads to other servers of this host: {shown}");
    for target in [format!("127.0.0.1:{mcp}"), format!("localhost:{mcp}"), admin.to_string()] {
        let url = format!("http://{target}/healthz");
        let shown = run("proxied", &url);
        assert!(shown.contains("gateway-listener"), "{url}: {shown}");
        // The network of a command has no route to the host.
        let shown = run("direct", &url);
        assert!(
            shown.contains("execute.command_failed") && shown.contains("only the proxy can reach hosts"),
            "{url}: {shown}"
        );
    }
    serving.stop();
}
