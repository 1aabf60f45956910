//! A program of its own that calls tools through all stages, with a policy and a command in code.
//!
//! `cargo run --package toolgate --example embed -- FOLDER`, where FOLDER is to keep the state.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use serde_json::{Map, Value, json};
use toolgate::{Arg, Caller, CliCommand, Outcome, Toolgate, when};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // First of all: tools run in processes that are this same program under another name.
    toolgate::run_if_worker();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(call_tools())
}

async fn call_tools() -> Result<(), Box<dyn std::error::Error>> {
    let state = std::env::args().nth(1).ok_or("say where to keep the state")?;
    let short_texts = when(
        |_, _, arguments| {
            arguments.get("text").and_then(|text| text.as_str()).is_none_or(|text| text.len() < 100)
        },
        "texts have fewer than 100 bytes here",
    );
    let toolgate = Toolgate::builder()
        .state(state)
        .tools(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/embed/shout.json"))
        .tools(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/embed/first_pages.yaml"))
        .command("first_pages", first_pages())
        .policy(short_texts)
        .build()
        .await?;
    toolgate.publish_all().await?;

    let caller = Caller::new::<String>("ann", []);
    println!("tools: {}", toolgate.list(&caller).join(", "));
    for (tool, arguments) in [
        ("shout", json!({ "text": "to be or not to be" })),
        ("shout", json!({ "text": "x".repeat(200) })),
        ("first_pages", json!({ "text": "one\ntwo\nthree\n", "pages": 1 })),
    ] {
        let arguments: Map<String, Value> = serde_json::from_value(arguments)?;
        match toolgate.call(tool, arguments, &caller).await {
            Outcome::Released(end) => println!("released: {}", end.value),
            Outcome::Refused(end) => println!("refused: {}: {}", end.reason, end.to_caller),
            other => println!("{other:?}"),
        }
    }
    toolgate.deliver_alerts().await;
    toolgate.close()?;
    Ok(())
}

/// The document says what the arguments of a call are and what the command may do; its line is made here.
fn first_pages() -> CliCommand {
    CliCommand::new("head").stdin("{text}").args(|input| {
        let lines = input.get("pages").and_then(Value::as_u64).map(|pages| json!(pages * 2));
        vec![Arg::option_value("--lines=", lines.as_ref())]
    })
}
