//! Prints the result of a test run for the tool's author.

mod grant;

use std::io::Write;

use serde_json::{Map, Value, json};
use toolgate_gate::{
    Candidate, Observed, Outcome, RefusedCall, RunReport, Trial, WiderGrant, wider_than_used,
};
use toolgate_spec::Code;

use self::grant::grants;
use crate::{
    Failure,
    terminal::{Terminal, visible},
};

/// Prints the reason, message, stack, console output and missing grants of a failed run.
pub fn print_failure(candidate: &Candidate, trial: &Trial, terminal: &mut Terminal) -> Result<(), Failure> {
    let (stage, text) = match &trial.outcome {
        Outcome::Refused(end) => (end.reason.code(), end.to_operator.clone()),
        Outcome::Failed(end) => (end.reason.code(), end.to_operator.clone()),
        Outcome::Broken(end) => (end.reason.code(), end.to_operator.clone()),
        Outcome::Pending(end) => ("decide.approval_pending", end.to_caller.clone()),
        Outcome::Released(_) => return Ok(()),
    };
    writeln!(terminal, "  failed   {} {stage}: {}", Code::LocalPassFailed.name(), visible(&text))?;
    if let Some(report) = &trial.report {
        print_report(report, terminal)?;
    }
    if let Outcome::Refused(RefusedCall { remedy: Some(remedy), .. }) = &trial.outcome {
        writeln!(terminal, "  remedy   {}", visible(remedy))?;
    }
    for grant in grants(candidate, trial) {
        writeln!(terminal, "  grant    {}", visible(&grant))?;
    }
    let capabilities =
        candidate.tool.safety().get("capabilities").map(ToString::to_string).unwrap_or_default();
    writeln!(terminal, "  safety   {}", visible(&capabilities))?;
    Ok(())
}

fn print_report(report: &RunReport, terminal: &mut Terminal) -> Result<(), Failure> {
    if let Err(failure) = &report.outcome {
        for frame in &failure.stack {
            writeln!(terminal, "           at {}", visible(frame))?;
        }
        if let Some([class, helper, reason]) = failure.helper.as_deref() {
            writeln!(terminal, "  helper   {} {}: {}", visible(class), visible(helper), visible(reason))?;
        }
    }
    for (level, line) in &report.console {
        writeln!(terminal, "  {level:<8} {}", visible(line))?;
    }
    Ok(())
}

/// Grants that the run did not use. Empty for a failed run, which might have used more.
pub fn wider(candidate: &Candidate, trial: &Trial) -> Vec<WiderGrant> {
    if !trial.has_passed() {
        return Vec::new();
    }
    wider_than_used(&candidate.tool, &Observed::from_json(&trial.pass.observed))
}

pub fn print_wider(
    candidate: &Candidate,
    trial: &Trial,
    terminal: &mut Terminal,
) -> Result<Vec<WiderGrant>, Failure> {
    let wider = wider(candidate, trial);
    for one in &wider {
        // --tighten does not change these.
        let by_hand = if one.enough.is_null() { "; narrow it by hand in `capability`" } else { "" };
        writeln!(
            terminal,
            "  wider    sandboxOverrides.{} is `{}`, the run used {}{by_hand}",
            one.setting,
            visible(&one.declared),
            visible(&one.used)
        )?;
    }
    Ok(wider)
}

/// A test run for `--format json`.
pub fn to_json(candidate: &Candidate, trial: &Trial) -> Value {
    let mut report = Map::new();
    let outcome = match &trial.outcome {
        Outcome::Released(end) => json!({ "ok": true, "result": end.value }),
        other => json!({
            "ok": false,
            "code": other.reason().map(toolgate_gate::Reason::code),
            "message": match other {
                Outcome::Refused(end) => &end.to_operator,
                Outcome::Failed(end) => &end.to_operator,
                Outcome::Broken(end) => &end.to_operator,
                Outcome::Pending(end) => &end.to_caller,
                Outcome::Released(_) => "",
            },
            "remedy": other.remedy(),
            "stack": trial.report.as_ref().and_then(|report| report.outcome.as_ref().err()).map(|failure| &failure.stack),
        }),
    };
    if !trial.has_passed() {
        report.insert("code".into(), Code::LocalPassFailed.name().into());
    }
    report.insert("outcome".into(), outcome);
    report.insert("toolSafety".into(), candidate.tool.safety().clone());
    report.insert("callId".into(), trial.outcome.call_id().into());
    report.insert("observed".into(), trial.pass.observed.clone());
    report.insert("grant".into(), grants(candidate, trial).into());
    let wider: Vec<Value> = wider(candidate, trial)
        .into_iter()
        .map(|one| {
            json!({ "setting": one.setting, "declared": one.declared, "used": one.used, "enough": one.enough })
        })
        .collect();
    report.insert("wider".into(), wider.into());
    if let Some(run) = &trial.report {
        let console: Vec<Value> =
            run.console.iter().map(|(level, text)| json!({ "level": level, "text": text })).collect();
        report.insert("console".into(), console.into());
        report.insert("layers".into(), json!(run.layers));
    }
    Value::Object(report)
}
