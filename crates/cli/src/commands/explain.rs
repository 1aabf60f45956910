//! Explains codes: findings in documents, reasons of calls, refused HTTP requests, and failed requests of tools.

use std::io::Write;

use anstyle::Style;
use serde_json::{Value, json};
use toolgate_egress::{Class, EgressReason};
use toolgate_gate::{EndKind, Reason};
use toolgate_server::DoorCode;
use toolgate_spec::{Code, Severity};

use crate::{
    CommandExit, Failure,
    args::{ExplainArgs, OutputFormat},
    similar,
    terminal::{Terminal, visible},
};

pub fn run(args: &ExplainArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let named = args.code.as_deref().map(known).transpose()?;
    match (args.format, named) {
        (OutputFormat::Json, Some(known)) => terminal.data(known.to_json()),
        (OutputFormat::Json, None) => {
            terminal.data(
                json!({ "codes": ExplainedCode::all().map(ExplainedCode::to_json).collect::<Vec<_>>() }),
            );
        }
        (OutputFormat::Text, Some(known)) => return explain(known, terminal),
        (OutputFormat::Text, None) => return list(terminal),
    }
    Ok(CommandExit::Clean)
}

/// A code that users see.
#[derive(Clone, Copy, Debug)]
enum ExplainedCode {
    Finding(Code),
    Call(Reason),
    Door(DoorCode),
    /// Why a request of a tool failed.
    Egress(EgressReason),
}

impl ExplainedCode {
    fn all() -> impl Iterator<Item = Self> {
        let findings = Code::ALL.iter().copied().map(Self::Finding);
        let calls = Reason::ALL.iter().copied().map(Self::Call);
        let door = DoorCode::ALL.iter().copied().map(Self::Door);
        let egress = EgressReason::ALL.iter().copied().map(Self::Egress);
        findings.chain(calls).chain(door).chain(egress)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Finding(code) => code.name(),
            Self::Call(reason) => reason.code(),
            Self::Door(code) => code.code(),
            Self::Egress(reason) => reason.slug(),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Finding(code) => code.title(),
            Self::Call(reason) => reason.meaning(),
            Self::Door(code) => code.title(),
            Self::Egress(reason) => reason.meaning(),
        }
    }

    /// The severity or outcome, in one word.
    const fn kind(self) -> &'static str {
        match self {
            Self::Finding(code) => severity_name(code.severity()),
            Self::Call(reason) => match reason.end() {
                EndKind::Refused => "refused",
                EndKind::Failed => "failed",
                EndKind::Broken => "broken",
            },
            Self::Door(_) => "refused",
            Self::Egress(reason) => match reason.class() {
                Class::InvalidInput | Class::Security => "refused",
                Class::HelperRuntime => "failed",
            },
        }
    }

    fn to_json(self) -> Value {
        json!({
            "code": self.name(), "kind": self.kind(), "title": self.title(), "explanation": self.paragraphs(),
        })
    }

    fn style(self, terminal: &Terminal) -> Style {
        match self.kind() {
            "error" | "broken" => terminal.palette.error,
            _ => terminal.palette.warning,
        }
    }

    /// The cause and the remedy, one paragraph each.
    fn paragraphs(self) -> Vec<String> {
        match self {
            Self::Finding(code) => {
                let told = code.explanation().split("\n\n").map(str::to_owned);
                told.chain([publishing(code)]).collect()
            }
            Self::Call(reason) => {
                let stage = match reason.stage() {
                    Some(stage) => format!("The call ended in the stage `{}`", stage.name()),
                    None => "The call ended because of the journal".to_owned(),
                };
                let whose = match reason.end() {
                    EndKind::Refused => "the gateway refused it",
                    EndKind::Failed => "the tool ran and failed",
                    EndKind::Broken => "the gateway itself failed, so the caller sees only the call id",
                };
                let retry = match reason.retry() {
                    toolgate_gate::Retry::Never => "Repeating the same call does not help.",
                    toolgate_gate::Retry::ChangeArguments => "The call can succeed with other arguments.",
                    toolgate_gate::Retry::Later => "The same call can succeed later.",
                    toolgate_gate::Retry::AfterApproval => "The same call can succeed after an approval.",
                };
                vec![format!("{stage}: {whose}. {retry}"), format!("What to do: {}", reason.remedy())]
            }
            Self::Door(code) => vec![
                format!(
                    "The gateway answered with HTTP status {}; no call was made.",
                    code.status().as_u16()
                ),
                format!("What to do: {}", code.remedy()),
            ],
            Self::Egress(reason) => {
                let whose = match reason.class() {
                    Class::InvalidInput => "The request of the tool is not valid; nothing was sent.",
                    Class::Security => "The gateway refused a request of the tool.",
                    Class::HelperRuntime => "A request of the tool failed on the network or at the server.",
                };
                let class =
                    format!("{whose} The tool sees an error of the class `{}`.", reason.class().word());
                vec![class, format!("What to do: {}", reason.remedy())]
            }
        }
    }
}

fn publishing(code: Code) -> String {
    let remark = match code.severity() {
        Severity::Error => {
            return "A document with this finding is rejected; the finding cannot be allowed.".to_owned();
        }
        Severity::Warning if code.may_block_publishing() => {
            "`toolgate check` accepts a document with this finding; `toolgate publish` may require `--accept` for it."
        }
        Severity::Warning => "A document with this finding is accepted.",
    };
    format!("{remark} `toolgate check --allow {}` hides it.", code.name())
}

/// Finds a finding's code by name, or suggests a similar one.
pub fn code(name: &str) -> Result<Code, Failure> {
    Code::from_name(name).ok_or_else(|| unknown(name, Code::ALL.iter().map(|code| code.name())))
}

fn known(name: &str) -> Result<ExplainedCode, Failure> {
    ExplainedCode::all()
        .find(|known| known.name() == name)
        .ok_or_else(|| unknown(name, ExplainedCode::all().map(ExplainedCode::name)))
}

fn unknown(name: &str, codes: impl Iterator<Item = &'static str>) -> Failure {
    let hint = match similar::closest(name, codes) {
        Some(close) => format!("did you mean `{close}`?"),
        None => "run `toolgate explain` to list all codes".into(),
    };
    Failure::new(format!("unknown code `{}`; {hint}", visible(name)))
}

fn explain(known: ExplainedCode, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let (bold, style) = (terminal.palette.bold, known.style(terminal));
    writeln!(terminal, "{style}{}{style:#} {bold}{}{bold:#}: {}", known.kind(), known.name(), known.title())?;
    for paragraph in known.paragraphs() {
        writeln!(terminal, "\n{}", fill(&paragraph, terminal.columns().unwrap_or(LINE).min(LINE)))?;
    }
    Ok(CommandExit::Clean)
}

fn list(terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let widest = ExplainedCode::all().map(|known| known.name().len()).max().unwrap_or_default();
    for known in ExplainedCode::all() {
        let style = known.style(terminal);
        writeln!(
            terminal,
            "{style}{:<7}{style:#}  {:<widest$}  {}",
            known.kind(),
            known.name(),
            known.title()
        )?;
    }
    Ok(CommandExit::Clean)
}

pub const fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// Breaks prose into lines of at most `width` characters.
fn fill(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let letters = word.chars().count();
        if column > 0 && column + 1 + letters > width {
            lines.push('\n');
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += letters;
    }
    lines
}

const LINE: usize = 80;
