//! Lists, shows and answers questions about calls.

mod watch;

use std::{io::Write, sync::Arc, time::SystemTime};

use serde_json::{Value, json};
use toolgate::RecordedQueue;
use toolgate_config::{Config, Overrides};
use toolgate_gate::{
    Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, ApprovalStore, Decider,
};
use toolgate_store::StateDb;

use crate::{
    CommandExit, Failure,
    args::{ApprovalsArgs, ApprovalsCommand, OutputFormat},
    gateway,
    terminal::{Terminal, visible},
    time,
};

pub fn run(args: &ApprovalsArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let config = args.config.load(&Overrides::default())?;
    let queue = toolgate::open_queue(&config).map_err(|error| Failure::new(visible(&error.to_string())))?;
    let now = SystemTime::now();
    match &args.command {
        ApprovalsCommand::List { all, limit, format } => {
            let state = (!all).then_some(ApprovalState::Pending);
            let mut found = queue.list(state, usize::MAX, now).map_err(|problem| queue_failure(&problem))?;
            if !all {
                // Questions that expire first come first, so the limit never hides them.
                found.reverse();
                found.sort_by_key(|approval| approval.question.expires);
            }
            list(&found, *limit, *format, terminal)
        }
        ApprovalsCommand::Show { id, reveal } => {
            let id = id_of(&queue, id)?;
            let operator = gateway::operator();
            let whole = reveal.then(|| queue.reveal(&id, &Decider::Operator(&operator), now));
            let whole = whole.transpose().map_err(|problem| queue_failure(&problem))?;
            let mut approval = queue.get(&id, now).map_err(|problem| queue_failure(&problem))?;
            approval.question.arguments = whole.or(approval.question.arguments);
            terminal.data(to_json(&approval));
            Ok(CommandExit::Clean)
        }
        ApprovalsCommand::Approve { id, note, format } => {
            decide(&queue, (id, ApprovalState::Approved, note.as_deref()), *format, terminal)
        }
        ApprovalsCommand::Deny { id, note, format } => {
            decide(&queue, (id, ApprovalState::Denied, note.as_deref()), *format, terminal)
        }
        ApprovalsCommand::Watch => gateway::wait(watch::watch(&queue, terminal)),
    }
}

/// Opens the state database without tools and sandbox.
pub fn state(config: &Config) -> Result<Arc<StateDb>, Failure> {
    toolgate::open_state(config).map_err(|error| Failure::new(visible(&error.to_string())))
}

fn decide(
    queue: &RecordedQueue,
    (id, state, note): (&str, ApprovalState, Option<&str>),
    format: OutputFormat,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    let by = gateway::operator();
    match queue.decide(&id_of(queue, id)?, state, &Decider::Operator(&by), note, SystemTime::now()) {
        Ok(approval) => {
            match format {
                OutputFormat::Json => terminal.data(to_json(&approval)),
                OutputFormat::Text => line(&approval, ArgumentDetail::Short, terminal)?,
            }
            Ok(CommandExit::Clean)
        }
        Err(problem @ ApprovalError::Unrevealed(_)) => Err(Failure::Findings(format!(
            "`{id}`: {problem} with `toolgate approvals show {id} --reveal`",
            id = visible(id)
        ))),
        Err(problem @ (ApprovalError::NotPending(_) | ApprovalError::Expired | ApprovalError::Unknown)) => {
            Err(Failure::Findings(format!("`{}`: {problem}", visible(id))))
        }
        Err(problem) => Err(queue_failure(&problem)),
    }
}

fn list(
    found: &[Approval],
    limit: usize,
    format: OutputFormat,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    let shown = found.iter().take(limit);
    let more = found.len() - shown.len();
    match format {
        OutputFormat::Json => {
            let shown: Vec<Value> = shown.map(to_json).collect();
            terminal.data(json!({ "approvals": shown, "more": more }));
        }
        OutputFormat::Text if found.is_empty() => writeln!(terminal, "no pending questions")?,
        OutputFormat::Text => {
            for approval in shown {
                line(approval, ArgumentDetail::Short, terminal)?;
            }
            if more > 0 {
                writeln!(terminal, "{more} more; raise --limit to see them")?;
            }
        }
    }
    Ok(CommandExit::Clean)
}

/// How much of a call's arguments to print.
#[derive(Clone, Copy)]
enum ArgumentDetail {
    Short,
    Whole,
}

/// Prints a question. The gateway's own lines come first, with fixed labels; the tool's message comes last.
fn line(approval: &Approval, shown: ArgumentDetail, terminal: &mut Terminal) -> Result<(), Failure> {
    let question = &approval.question;
    let (bold, style) = (terminal.palette.bold, terminal.palette.of(approval.state.name()));
    writeln!(
        terminal,
        "{bold}{}{bold:#}  {style}{}{style:#}  {}  {} calls {}",
        approval.id,
        approval.state.name(),
        question.risk,
        visible(&question.binding.caller),
        visible(&question.binding.tool)
    )?;
    for reason in &question.because {
        writeln!(terminal, "    because {}", visible(reason))?;
    }
    if let Some(remembers) = &question.remembers {
        writeln!(terminal, "    if approved, {}", visible(&remembers.to_string()))?;
    }
    if approval.is_declined_by_client() {
        writeln!(
            terminal,
            "    declined by the caller's client; `toolgate approvals approve` overrides that"
        )?;
    }
    if let Some(arguments) = &question.arguments {
        let arguments = match shown {
            ArgumentDetail::Short => shortened(arguments),
            ArgumentDetail::Whole => arguments.clone(),
        };
        writeln!(terminal, "    arguments {}", visible(&arguments))?;
    }
    if question.hidden.bytes > 0 {
        writeln!(terminal, "    hidden {}; see `toolgate approvals show ID --reveal`", question.hidden)?;
    }
    writeln!(terminal, "    message {}", visible(&question.prompt))?;
    Ok(())
}

fn shortened(arguments: &str) -> String {
    match arguments.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => {
            format!("{}… (`toolgate approvals show` has more)", arguments.get(..end).unwrap_or_default())
        }
        None => arguments.to_owned(),
    }
}

fn to_json(approval: &Approval) -> Value {
    let question = &approval.question;
    let binding = &question.binding;
    json!({
        "id": approval.id.as_str(),
        "state": approval.state.name(),
        "prompt": question.prompt,
        "arguments": question.arguments,
        "hiddenBytes": question.hidden.bytes,
        "revealedTo": approval.revealed_to,
        "remembered": question.remembers.as_ref().map(|remembers| {
            json!({ "conversation": remembers.conversation, "until": time::rfc3339(remembers.until) })
        }),
        "because": question.because,
        "risk": question.risk,
        "caller": binding.caller,
        "tool": binding.tool,
        "toolDigest": binding.tool_digest,
        "argumentsDigest": binding.arguments_digest,
        "policyDigest": binding.policy_digest,
        "created": time::rfc3339(question.created),
        "expires": time::rfc3339(question.expires),
        "decidedBy": approval.decided_by,
        "decidedAt": approval.decided_at.map(time::rfc3339),
        "note": approval.note,
    })
}

/// Finds an approval by its id or a unique prefix.
fn id_of(queue: &RecordedQueue, text: &str) -> Result<ApprovalId, Failure> {
    queue.find_id(text).map_err(|problem| match problem {
        ApprovalError::Unavailable(_) => queue_failure(&problem),
        ApprovalError::Unknown => Failure::new(format!(
            "unknown approval `{}`; list all with `toolgate approvals list --all`",
            visible(text)
        )),
        problem => Failure::new(format!("`{}`: {problem}", visible(text))),
    })
}

fn queue_failure(problem: &ApprovalError) -> Failure {
    Failure::new(visible(&problem.to_string()))
}

/// The longest arguments in a list, in characters.
const LONGEST_LINE: usize = 160;
