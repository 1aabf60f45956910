//! The examples of `docs/embedding.md` in one program, which a test runs: `guide DIR`, with the state in DIR.
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate::{
    Arg, Arguments, AskFrom, AuditSync, Builder, Caller, Classification, CliCommand, IssuerAlgorithm,
    JwtIssuer, JwtKey, Outcome, OutputParser, RustTool, Toolgate, Value, WireTarget, WorkerIsolation,
    allow_list, deny_list, json, when,
};

type ProgramError = Box<dyn std::error::Error>;

fn main() -> Result<(), ProgramError> {
    toolgate::block_on(guide())?
}

async fn guide() -> Result<(), ProgramError> {
    let state = std::env::args().nth(1).ok_or("name the state directory: guide DIR")?;
    let builder =
        Toolgate::builder().folder(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/embed")).state(state);
    let toolgate = with_policies(with_code(with_settings(builder))).build().await?;
    toolgate.publish_all().await?;
    if std::env::args().nth(2).as_deref() == Some("serve") {
        return serve(toolgate).await;
    }
    call_tools(&toolgate).await?;
    list_tools(&toolgate)?;
    check_token(&toolgate).await;
    toolgate.deliver_alerts().await;
    toolgate.close()?;
    Ok(())
}

fn with_settings(builder: Builder) -> Builder {
    builder
        .settings("limits: {calls: 20}") // any key of `toolgate.yaml`
        .approvals(AskFrom::Never)
        .audit(|audit| audit.sync = AuditSync::Disk)
        .worker(|worker| {
            worker.count = Some(2);
            worker.isolation = WorkerIsolation::PerCaller;
        })
        .jwt(JwtIssuer {
            algorithms: vec![IssuerAlgorithm::Hs256],
            ..JwtIssuer::new("https://login.example/", "my-tools", JwtKey::SecretEnv("LOGIN_SECRET".into()))
        })
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    /// The text to count.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct WordCount {
    words: usize,
}

fn count_words() -> RustTool {
    RustTool::new("count_words", |input: Text| async move {
        Ok(WordCount { words: input.text.split_whitespace().count() })
    })
    .description("Counts the words of a text. Returns their number.")
    .classification(Classification::Read)
    .test_value(json!({ "text": "to be" }))
}

fn with_code(builder: Builder) -> Builder {
    builder
        .tools("shout.json")
        .tools("first_pages.yaml")
        .tool(count_words())
        .command("first_pages", first_pages())
        .output_parser("first_pages", lines())
}

/// The document says what the arguments of a call are and what the command may do. The command line is made here.
fn first_pages() -> CliCommand {
    CliCommand::new("head").stdin("{text}").args(|input| {
        let lines = input.get("pages").and_then(Value::as_u64).map(|pages| json!(pages * 2));
        vec![Arg::option_value("--lines=", lines.as_ref())]
    })
}

fn lines() -> OutputParser {
    OutputParser::new(|stdout| {
        let text = str::from_utf8(stdout).map_err(|error| error.to_string())?;
        Ok(text.lines().collect())
    })
}

fn with_policies(builder: Builder) -> Builder {
    let short_texts = when(
        |_, _, arguments| arguments.get("text").and_then(Value::as_str).is_none_or(|text| text.len() < 100),
        "texts have fewer than 100 bytes here",
    );
    builder
        .policy(short_texts)
        .policy_for("researcher", allow_list(["count_words", "first_pages"]))
        .policy_for("writer", deny_list(["first_pages"]))
        .policy_for("local:local", allow_list(["count_words"])) // the caller over stdio
        .cedar_text("rules", "permit(principal, action, resource);")
}

async fn call_tools(toolgate: &Toolgate) -> Result<(), ProgramError> {
    let (researcher, writer) = (Caller::new("researcher", ["read"]), Caller::new("writer", ["read"]));
    for (caller, tool, arguments) in [
        (&writer, "shout", json!({ "text": "to be or not to be" })),
        (&writer, "shout", json!({ "text": "x".repeat(200) })),
        (&writer, "first_pages", json!({ "text": "one", "pages": 1 })),
        (&researcher, "first_pages", json!({ "text": "one\ntwo\nthree\n", "pages": 1 })),
        (&researcher, "count_words", json!({ "text": "to be or not to be" })),
        (&researcher, "count_words", json!({ "txt": "to be" })),
        (&Caller::new("stranger", ["read"]), "shout", json!({ "text": "hi" })),
    ] {
        let arguments = Arguments::from_value(arguments)?;
        match toolgate.call(tool, arguments, caller).await {
            Outcome::Released(end) => println!("released: {}", end.value),
            Outcome::Refused(end) => println!("refused: {}: {}", end.reason, end.to_caller),
            other => println!("{other:?}"),
        }
    }
    let arguments = Arguments::parse(r#"{"text": "one two"}"#)?;
    let outcome = toolgate.call_within(Duration::from_secs(20), "count_words", arguments, &researcher).await;
    println!("in time: {}", matches!(outcome, Outcome::Released(_)));
    Ok(())
}

fn list_tools(toolgate: &Toolgate) -> Result<(), ProgramError> {
    let list = toolgate.list_tools(&Caller::new("researcher", ["read"]), WireTarget::Anthropic);
    println!("{}", json!({ "tools": list.tools }));
    let called = list.tool_named("count_words").ok_or("the model named no tool of the list")?;
    println!("call: {called}");
    Ok(())
}

async fn check_token(toolgate: &Toolgate) {
    let token = std::env::var("TOKEN").unwrap_or_default();
    match toolgate.authenticate(&token).await {
        Ok(caller) => println!("called by {}", caller.subject),
        Err(wrong) => println!("not authenticated: {wrong}"),
    }
}

async fn serve(toolgate: Toolgate) -> Result<(), ProgramError> {
    let stop = std::future::pending(); // or any future, such as a signal
    Arc::new(toolgate).serve_stdio(stop).await?;
    Ok(())
}
