//! Calls a published tool, through the running gateway if there is one.

use std::io::{self, IsTerminal, Write};

use serde_json::{Map, Value, json};
use toolgate::{Config, LoadProblem, Toolgate};
use toolgate_config::Overrides;
use toolgate_gate::{Answer, Call, ClientAnswer, ClientInfo, Outcome, PendingCall, Reason, Warning};
use toolgate_policy::LifecycleState;
use toolgate_server::{AuthIdentity, Role};

use crate::{
    CommandExit, Failure,
    args::{CallArgs, OutputFormat},
    gateway, local, runner,
    terminal::{Terminal, json_pretty, visible},
};

pub fn run(args: &CallArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let outcome = gateway::wait(async {
        let config = args.config.load(&Overrides::default())?;
        match local::call(&config, &args.tool, &args.arguments, None).await? {
            Some(ended) => through_gateway(args, &config, ended, terminal).await,
            None => Box::pin(by_itself(args, terminal)).await,
        }
    })?;
    match args.format {
        OutputFormat::Json => terminal.data(to_json(&outcome)),
        OutputFormat::Text => print(&outcome, terminal)?,
    }
    Ok(match outcome {
        Outcome::Released(_) => CommandExit::Clean,
        Outcome::Pending(_) | Outcome::Refused(_) | Outcome::Failed(_) => CommandExit::Findings,
        Outcome::Broken(_) => CommandExit::CouldNotRead,
    })
}

/// Finishes a call that the running gateway made: prints notes and answers its question.
async fn through_gateway(
    args: &CallArgs,
    config: &Config,
    (outcome, notes): (Outcome, Vec<String>),
    terminal: &mut Terminal,
) -> Result<Outcome, Failure> {
    for note in &notes {
        Terminal::note(note);
    }
    let Some(answer) = answer_for(&outcome, args, terminal)? else { return Ok(outcome) };
    let ended = local::call(config, &args.tool, &args.arguments, Some(&answer)).await?;
    let (outcome, _) =
        ended.ok_or_else(|| Failure::new("the gateway stopped before it received the answer"))?;
    Ok(outcome)
}

async fn by_itself(args: &CallArgs, terminal: &mut Terminal) -> Result<Outcome, Failure> {
    let toolgate = args.config.open().await?;
    let (outcome, notes) = make(&toolgate, &args.tool, &args.arguments, None).await?;
    for note in &notes {
        Terminal::note(note);
    }
    let outcome = match answer_for(&outcome, args, terminal)? {
        Some(answer) => make(&toolgate, &args.tool, &args.arguments, Some(answer)).await?.0,
        None => outcome,
    };
    toolgate.deliver_alerts().await;
    Ok(outcome)
}

/// Asks on the terminal if the call waits for an answer and this client may give it.
fn answer_for(
    outcome: &Outcome,
    args: &CallArgs,
    terminal: &mut Terminal,
) -> Result<Option<ClientAnswer>, Failure> {
    let Outcome::Pending(pending) = outcome else { return Ok(None) };
    if args.autonomous || !pending.client_may_answer || !can_ask() {
        return Ok(None);
    }
    let answer = ask(pending, terminal)?;
    Ok(Some(ClientAnswer { approval: pending.approval.clone(), answer, answered_after: None }))
}

/// Makes one call as the local caller. Also returns notes for the operator.
pub async fn make(
    toolgate: &Toolgate,
    tool: &str,
    arguments: &[String],
    answer: Option<ClientAnswer>,
) -> Result<(Outcome, Vec<String>), Failure> {
    let config = toolgate.config();
    let local = &config.auth.local;
    let caller = AuthIdentity::local(&local.subject, local.permissions.clone(), Role::Caller).caller;
    let arguments = match toolgate.gate().find(&caller, tool) {
        Some(known) => runner::arguments(known.spec(), arguments)?,
        // The gate refuses and records calls of unknown tools.
        None => Map::new(),
    };
    let call = Call {
        tool: tool.to_owned(),
        arguments,
        caller,
        client: ClientInfo { transport: "command-line", ..ClientInfo::default() },
        answer,
        ask: None,
        auth_status: None,
    };
    let outcome = toolgate.gate().handle(call).await;
    let is_unknown = outcome.reason() == Some(Reason::UnknownTool);
    let notes = if is_unknown { explain(toolgate, tool) } else { Vec::new() };
    Ok((outcome, notes))
}

/// Why a tool is not served, for the operator only; callers do not see this.
fn explain(toolgate: &Toolgate, name: &str) -> Vec<String> {
    let loaded = toolgate.loaded();
    let problem = |problem: &LoadProblem| format!("{}: {}", visible(&problem.place), visible(&problem.what));
    let mut notes: Vec<String> = loaded.problems.iter().map(problem).collect();
    if let Some(tool) = loaded.tools.iter().find(|tool| tool.name == name) {
        let why = match &tool.candidate {
            Err(problem) => problem.clone(),
            Ok(_) if !tool.is_exposed => "the setting `exposure` hides it".to_owned(),
            Ok(candidate) if candidate.lifecycle.state != LifecycleState::Active => {
                format!("{}: {}", candidate.lifecycle.state.name(), candidate.lifecycle.because)
            }
            Ok(candidate) => {
                let needed = candidate.tool.permissions_needed();
                format!("`auth.local.permissions` or a policy hides it; it needs `{}`", needed.join("`, `"))
            }
        };
        notes.push(format!("`{}` is not served to you: {}", visible(name), visible(&why)));
    }
    notes
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn ask(pending: &PendingCall, terminal: &mut Terminal) -> Result<Answer, Failure> {
    terminal.flush()?;
    let mut stderr = io::stderr();
    // Escape each line by itself: the line breaks come from the gateway.
    let prompt: Vec<_> = pending.prompt.lines().map(visible).collect();
    write!(stderr, "{} [y/N] ", prompt.join("\n"))?;
    stderr.flush()?;
    let answer = gateway::read_line()?;
    // The input ended without an answer.
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
                let member = |warning: &Warning| json!({ "code": warning.code, "message": warning.message });
                report.insert("warnings".into(), end.warnings.iter().map(member).collect());
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
