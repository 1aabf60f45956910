//! What is told of what was refused: how much, in which order, and to whom?

use std::path::PathBuf;

use serde_json::json;
use toolgate_gate::{Purpose, RunReport, RunRequest, StopFlag};
use toolgate_handlers::{Access, Ended, Ending, NotReached, Refusals, Refused};

use crate::world::{World, ended, request, runtime};

const TEXT: &str = "args: ['{text}']";

fn failed(refused: impl Into<Refusals>) -> Ended {
    Ended { refused: refused.into(), ..ended(Ending::Exited(1), "", "cannot open") }
}

fn path(path: &str) -> Refused {
    Refused::Path { path: PathBuf::from(path), access: Access::Read }
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

fn told(world: &World, manifest: &str, text: &str, ended: Ended, purpose: Purpose) -> RunReport {
    let (tool, _) = world.recorded(manifest, ended);
    let arguments = json!({ "text": text });
    let arguments = arguments.as_object().unwrap();
    let survey = tool.survey(arguments, &StopFlag::default()).unwrap();
    runtime().block_on(survey.call.run(RunRequest { purpose, ..request(arguments) }))
}

fn message(report: RunReport) -> String {
    report.outcome.unwrap_err().message
}

/// It is there, or nobody would have refused it: whoever may name any path would learn which there are.
#[test]
fn a_path_outside_that_the_caller_named_is_told_to_everybody_else() {
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
        // What the program needs of itself, and what lies in a folder that is granted.
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
fn of_a_path_that_the_author_wrote_the_callers_part_is_not_told() {
    let (world, tool) = (World::new(), tool("args: ['/opt/data/{text}']"));
    let of =
        |refused: &str| message(told(&world, &tool, "report", failed(vec![path(refused)]), Purpose::Call));
    assert!(of("/opt/data").contains("reading `/opt/data`"));
    assert!(of("/opt/data/index").contains("reading `/opt/data/index`"));
    assert!(!of("/opt/data/report").contains("refused"));
    assert!(!of("/srv/report").contains("refused"));
}

/// Their number would tell, too.
#[test]
fn paths_beyond_the_list_are_counted_for_the_journal_only() {
    let flood = |dropped, dropped_paths| Refusals {
        told: (0..7).map(|number| Refused::Other(format!("call {number}"))).collect(),
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
fn no_flood_of_one_kind_hides_another() {
    let host = |number| Refused::Host { target: format!("{number}.test:443"), why: NotReached::NotListed };
    let mut refused: Vec<Refused> = (0..90).map(|number| Refused::Other(format!("call {number}"))).collect();
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
fn a_long_name_is_cut_and_no_secret_with_it() {
    let token = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
    for before in [1, 230, 260, 280, 400] {
        let long = format!("/opt/{}/{token}/{}", "y".repeat(before), "z".repeat(400));
        let refused = vec![
            path(&long),
            Refused::Host { target: format!("{token}.test:443"), why: NotReached::NotListed },
            Refused::Other(format!("sending a secret to `{long}`")),
        ];
        let report = told(&World::new(), &tool(TEXT), "hello", failed(refused), Purpose::Call);
        for line in &report.refused {
            assert!(line.chars().count() < 400, "{line}");
        }
        let all = format!("{:?}{}", report.refused.clone(), message(report));
        // Not the half of it either.
        assert!(!all.contains(token.get(..12).unwrap()), "{all}");
        assert!(all.contains('…'), "{all}");
    }
}
