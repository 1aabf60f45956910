//! Tests how denials are reported: how many, in which order, and to whom.

use std::path::PathBuf;

use serde_json::json;
use toolgate_gate::{Purpose, RunReport, RunRequest, StopFlag};
use toolgate_handlers::{CommandOutcome, Denial, Denials, HostDenial};
use toolgate_sandbox::{Attempt, Ending};

use crate::world::{World, ended, request, runtime};

const TEXT: &str = "args: ['{text}']";

fn failed(refused: impl Into<Denials>) -> CommandOutcome {
    CommandOutcome { refused: refused.into(), ..ended(Ending::Exited(1), "", "cannot open") }
}

fn path(path: &str) -> Denial {
    Denial::Path { path: PathBuf::from(path), access: Attempt::Read }
}

fn tool(cli: &str) -> String {
    format!(
        "
name: tried
description: Is tried. Returns text.
classification: read
input: {{type: object, required: [text], properties: {{text: {{type: string}}}}}}
testInput: {{text: x}}
handler: {{cli: {{command: echo, {cli}}}}}
capability: {{execution: {{sandbox: process, allowedPaths: [$WORKSPACE]}}}}
"
    )
}

fn told(world: &World, manifest: &str, text: &str, ended: CommandOutcome, purpose: Purpose) -> RunReport {
    let (tool, _) = world.recorded(manifest, ended);
    let arguments = json!({ "text": text });
    let arguments = arguments.as_object().unwrap();
    let survey = tool.survey(arguments, &StopFlag::default()).unwrap();
    runtime().block_on(survey.call.run(RunRequest { purpose, ..request(arguments) }))
}

fn message(report: RunReport) -> String {
    report.outcome.unwrap_err().message
}

/// Only existing paths are denied, so a caller who may name any path would learn which exist.
#[test]
fn denied_path_named_by_the_caller_is_hidden_from_the_caller() {
    let world = World::new();
    for cli in ["args: ['{text}']", "args: ['--at={text}']", "env: {WHERE: '{text}'}", "stdin: 'see {text}'"]
    {
        let tool = tool(cli);
        for (text, refused) in [
            ("/root/.bashrc", "/root/.bashrc"),
            ("/root", "/root/.git/HEAD"),
            (".bashrc", "/root/.bashrc"),
            ("a/../../../x", "/root/.git/HEAD"),
        ] {
            let of = |refused, purpose| told(&world, &tool, text, failed(refused), purpose);
            let report = of(vec![path(refused)], Purpose::Call);
            assert_eq!(report.refused, [format!("reading `{refused}`")], "{cli}");
            assert_eq!(message(report), message(of(vec![], Purpose::Call)), "{text}: {cli}");
            let author = message(of(vec![path(refused)], Purpose::LocalPass));
            let line = format!("the jail refused: reading `{refused}`; add the path");
            assert!(author.contains(&line), "{author}");
        }
        // Paths that the program needs itself, and paths in a granted directory.
        for (text, refused) in [("hello", "/etc/tool.conf"), ("closed", &world.at("docs/closed"))] {
            let caller = message(told(&world, &tool, text, failed(vec![path(refused)]), Purpose::Call));
            assert!(caller.contains(&format!("the jail refused: reading `{refused}`")), "{caller}");
        }
    }
    let fixed = tool("args: ['{text}', /etc/tool.conf], env: {CONFIG: /etc/tool.conf}");
    let caller = message(told(&world, &fixed, "hello", failed(vec![path("/etc/tool.conf")]), Purpose::Call));
    assert!(caller.contains("the jail refused: reading `/etc/tool.conf`"), "{caller}");
}

#[test]
fn callers_part_of_the_authors_path_is_not_reported() {
    let (world, tool) = (World::new(), tool("args: ['/opt/data/{text}']"));
    let of =
        |refused: &str| message(told(&world, &tool, "report", failed(vec![path(refused)]), Purpose::Call));
    assert!(of("/opt/data").contains("reading `/opt/data`"));
    assert!(of("/opt/data/index").contains("reading `/opt/data/index`"));
    assert!(!of("/opt/data/report").contains("refused"));
    assert!(!of("/srv/report").contains("refused"));
}

/// Their number would reveal it, too.
#[test]
fn dropped_paths_are_only_counted_in_the_journal() {
    let flood = |dropped, dropped_paths| Denials {
        listed: (0..7).map(|number| Denial::Other(format!("call {number}"))).collect(),
        dropped,
        dropped_paths,
    };
    let of = |dropped, dropped_paths, purpose| {
        let ended = failed(flood(dropped, dropped_paths));
        let report = told(&World::new(), &tool(TEXT), "hello", ended, purpose);
        (report.refused_dropped, message(report))
    };
    let (journal, caller) = of(100, 0, Purpose::Call);
    assert_eq!(journal, 100);
    assert!(caller.contains("call 4 and 102 more"), "{caller}");
    let (journal, caller) = of(100, 60, Purpose::Call);
    assert_eq!(journal, 100);
    assert!(caller.contains("call 4 and 42 more"), "{caller}");
    let (_, author) = of(100, 60, Purpose::LocalPass);
    assert!(author.contains("call 4 and 102 more"), "{author}");
}

/// The journal shows a hundred.
#[test]
fn many_denials_of_one_kind_do_not_hide_others() {
    let host = |number| Denial::Host { target: format!("{number}.test:443"), why: HostDenial::NotListed };
    let mut refused: Vec<Denial> = (0..90).map(|number| Denial::Other(format!("call {number}"))).collect();
    refused.extend((0..90).map(|number| path(&format!("/opt/{number}"))));
    refused.extend((0..90).map(host));
    let report = told(&World::new(), &tool(TEXT), "hello", failed(refused), Purpose::Call);
    assert_eq!(report.refused.len(), 270);
    let begins = |start: &str| report.refused.iter().take(100).filter(|told| told.starts_with(start)).count();
    assert_eq!((begins("reaching"), begins("reading"), begins("call")), (50, 25, 25));
    assert_eq!(report.refused[0], "reaching `0.test:443`");
    assert_eq!(report.refused[25], "reading `/opt/0`");
    let message = message(report);
    assert!(message.contains("the jail refused: reaching `0.test:443`"), "{message}");
}

#[test]
fn long_name_is_cut_without_showing_a_secret() {
    let token = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
    for before in [1, 230, 260, 280, 400] {
        let long = format!("/opt/{}/{token}/{}", "y".repeat(before), "z".repeat(400));
        let refused = vec![
            path(&long),
            Denial::Host { target: format!("{token}.test:443"), why: HostDenial::NotListed },
            Denial::Other(format!("sending a secret to `{long}`")),
        ];
        let report = told(&World::new(), &tool(TEXT), "hello", failed(refused), Purpose::Call);
        for line in &report.refused {
            assert!(line.chars().count() < 400, "{line}");
        }
        let all = format!("{:?}{}", report.refused.clone(), message(report));
        // Nor a part of it.
        assert!(!all.contains(token.get(..12).unwrap()), "{all}");
        assert!(all.contains('…'), "{all}");
    }
}
