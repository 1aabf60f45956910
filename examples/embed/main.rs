//! The example of the README. Run it in a folder that has a folder `tools` with `shout.json` in it.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use toolgate::{Arguments, Caller, Outcome, Toolgate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    toolgate::block_on(call_a_tool())? // in place of `#[tokio::main]`
}

async fn call_a_tool() -> Result<(), Box<dyn std::error::Error>> {
    let toolgate = Toolgate::builder().state("state").tools("tools").build().await?;
    toolgate.publish_all().await?; // tests each tool once with its test values; those that pass are live

    let caller = Caller::new("ann", ["reader"]);
    let arguments = Arguments::parse(r#"{"text": "to be or not to be"}"#)?;
    match toolgate.call("shout", arguments, &caller).await {
        Outcome::Released(result) => println!("{}", result.value),
        other => println!("not released: {other:?}"),
    }
    toolgate.close()?;
    Ok(())
}
