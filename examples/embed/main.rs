//! A program of its own that calls a tool through all stages, with a policy in code.
//!
//! `cargo run --package toolgate-host --example embed -- FOLDER`, where FOLDER is to keep the state.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use serde_json::{Map, json};
use toolgate::{Caller, Outcome, Toolgate, when};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // First of all: tools run in processes that are this same program under another name.
    toolgate::run_if_worker();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(call_a_tool())
}

async fn call_a_tool() -> Result<(), Box<dyn std::error::Error>> {
    let state = std::env::args().nth(1).ok_or("say where to keep the state")?;
    let short_texts = when(
        |_, _, arguments| {
            arguments.get("text").and_then(|text| text.as_str()).is_none_or(|text| text.len() < 100)
        },
        "texts have fewer than 100 bytes here",
    );
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/embed/shout.json");
    let toolgate = Toolgate::builder().state(state).tools(tools).policy(short_texts).build().await?;
    toolgate.publish_all().await?;

    let caller = Caller::new::<String>("ann", []);
    println!("tools: {}", toolgate.list(&caller).join(", "));
    for text in ["to be or not to be".to_owned(), "x".repeat(200)] {
        let mut arguments = Map::new();
        arguments.insert("text".to_owned(), json!(text));
        match toolgate.call("shout", arguments, &caller).await {
            Outcome::Released(end) => println!("released: {}", end.value),
            Outcome::Refused(end) => println!("refused: {}: {}", end.reason, end.to_caller),
            other => println!("{other:?}"),
        }
    }
    toolgate.deliver_alerts().await;
    toolgate.close()?;
    Ok(())
}
