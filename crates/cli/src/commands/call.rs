//! What does a published tool answer? One call through all stages.

use std::io::{self, IsTerminal, Write};

use serde_json::{Map, Value, json};
use toolgate::Toolgate;
use toolgate_gate::{Answer, Call, Client, ClientAnswer, Outcome, Pending, Reason, Warning};
use toolgate_policy::State;
use toolgate_server::{Identity, Role};

use crate::{
    Ending, Failure,
    args::{CallArgs, OutputFormat},
    gateway, runner,
    terminal::{Terminal, json_pretty, visible},
};

pub fn run(args: &CallArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let outcome = gateway::wait(async {
        let toolgate = args.config.open().await?;
        let config = toolgate.config();
        let local = &config.auth.local;
        let caller = Identity::local(&local.subject, local.permissions.clone(), Role::Caller).caller;
        let arguments = match toolgate.gate().find(&caller, &args.tool) {
            Some(tool) => runner::arguments(tool.spec(), &args.arguments)?,
            // The gate gives the answer for what is not there, and writes it down.
            None => Map::new(),
        };
        let mut call = Call {
            tool: args.tool.clone(),
            arguments,
            caller,
            client: Client { transport: "command-line", ..Client::default() },
            answer: None,
            ask: None,
            standing: None,
        };
        let outcome = toolgate.gate().handle(call.clone()).await;
        if outcome.reason() == Some(Reason::UnknownTool) {
            explain(&toolgate, &args.tool);
        }
        let outcome = match outcome {
            // Where only the queue answers, nobody is asked here for what would not count.
            Outcome::Pending(pending) if !args.autonomous && pending.client_may_answer && can_ask() => {
                let answer = ask(&pending, terminal)?;
                call.answer = Some(ClientAnswer { approval: pending.approval, answer, answered_after: None });
                toolgate.gate().handle(call).await
            }
            outcome => outcome,
        };
        toolgate.deliver_alerts().await;
        Ok(outcome)
    })?;
    match args.format {
        OutputFormat::Json => terminal.data(to_json(&outcome)),
        OutputFormat::Text => print(&outcome, terminal)?,
    }
    Ok(match outcome {
        Outcome::Released(_) => Ending::Clean,
        Outcome::Pending(_) | Outcome::Refused(_) | Outcome::Failed(_) => Ending::Findings,
        Outcome::Broken(_) => Ending::CouldNotRead,
    })
}

/// A caller is told nothing; whoever can run this command may know why the tool is not served.
fn explain(toolgate: &Toolgate, name: &str) {
    let loaded = toolgate.loaded();
    for problem in &loaded.problems {
        Terminal::note(&format!("{}: {}", visible(&problem.place), visible(&problem.what)));
    }
    if let Some(tool) = loaded.tools.iter().find(|tool| tool.name == name) {
        let why = match &tool.candidate {
            Err(problem) => problem.clone(),
            Ok(_) if !tool.is_exposed => "`exposure` keeps it back".to_owned(),
            Ok(candidate) if candidate.lifecycle.state != State::Active => {
                format!("{}: {}", candidate.lifecycle.state.name(), candidate.lifecycle.because)
            }
            Ok(candidate) => {
                let needed = candidate.tool.permissions_needed();
                format!(
                    "`auth.local.permissions` or a policy keeps it from you; it needs `{}`",
                    needed.join("`, `")
                )
            }
        };
        Terminal::note(&format!("`{}` is not served to you: {}", visible(name), visible(&why)));
    }
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn ask(pending: &Pending, terminal: &mut Terminal) -> Result<Answer, Failure> {
    terminal.flush()?;
    let mut stderr = io::stderr();
    // Each line by itself: the breaks between them are the gateway's own.
    let prompt: Vec<_> = pending.prompt.lines().map(visible).collect();
    write!(stderr, "{} [y/N] ", prompt.join("\n"))?;
    stderr.flush()?;
    let answer = gateway::read_line()?;
    // Not even a line break: the input has ended, and no person has answered.
    if answer.is_empty() {
        return Ok(Answer::Cancel);
    }
    Ok(if matches!(answer.trim(), "y" | "Y" | "yes") { Answer::Accept } else { Answer::Decline })
}

fn print(outcome: &Outcome, terminal: &mut Terminal) -> Result<(), Failure> {
    let palette = terminal.palette;
    match outcome {
        Outcome::Released(end) => {
            match &end.value {
                Value::String(text) => {
                    for line in text.lines() {
                        writeln!(terminal, "{}", visible(line))?;
                    }
                }
                value => writeln!(terminal, "{}", json_pretty(value))?,
            }
            for warning in &end.warnings {
                Terminal::note(&format!("warning: {}: {}", warning.code, visible(&warning.message)));
            }
        }
        Outcome::Pending(end) => {
            let style = palette.of("pending");
            writeln!(terminal, "{style}pending{style:#}  {}", visible(&end.to_caller))?;
        }
        Outcome::Refused(end) => {
            let style = palette.of("refused");
            writeln!(terminal, "{style}refused{style:#}  {}: {}", end.reason, visible(&end.to_caller))?;
        }
        Outcome::Failed(end) => {
            let style = palette.of("failed");
            writeln!(terminal, "{style}failed{style:#}   {}: {}", end.reason, visible(&end.to_caller))?;
        }
        Outcome::Broken(end) => {
            let style = palette.of("broken");
            writeln!(terminal, "{style}broken{style:#}   {}: {}", end.reason, visible(&end.to_operator))?;
        }
    }
    if let Some(remedy) = outcome.remedy() {
        writeln!(terminal, "         {}", visible(remedy))?;
    }
    Ok(())
}

fn to_json(outcome: &Outcome) -> Value {
    let mut report = Map::new();
    report.insert("callId".into(), outcome.call_id().into());
    match outcome {
        Outcome::Released(end) => {
            report.insert("outcome".into(), "released".into());
            report.insert("result".into(), end.value.clone());
            if !end.warnings.is_empty() {
                let told = |warning: &Warning| json!({ "code": warning.code, "message": warning.message });
                report.insert("warnings".into(), end.warnings.iter().map(told).collect());
            }
        }
        Outcome::Pending(end) => {
            report.insert("outcome".into(), "pending".into());
            report.insert("approval".into(), end.approval.as_str().into());
            report.insert("prompt".into(), end.prompt.as_str().into());
        }
        Outcome::Refused(end) => {
            report.insert("outcome".into(), "refused".into());
            report.insert("message".into(), end.to_caller.as_str().into());
            report.insert("remedy".into(), json!(end.remedy));
        }
        Outcome::Failed(end) => {
            report.insert("outcome".into(), "failed".into());
            report.insert("message".into(), end.to_caller.as_str().into());
            report.insert("remedy".into(), json!(end.remedy));
        }
        Outcome::Broken(end) => {
            report.insert("outcome".into(), "broken".into());
            report.insert("message".into(), end.to_operator.as_str().into());
        }
    }
    if let Some(reason) = outcome.reason() {
        report.insert("code".into(), reason.code().into());
        report.insert("retry".into(), reason.retry().name().into());
    }
    Value::Object(report)
}
