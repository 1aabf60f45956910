//! What does a code mean?

use std::io::Write;

use toolgate_spec::{Code, Severity};

use crate::{
    Ending, Failure,
    args::ExplainArgs,
    similar,
    terminal::{Terminal, visible},
};

pub fn run(args: &ExplainArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    match &args.code {
        Some(name) => explain(code(name)?, terminal),
        None => list(terminal),
    }
}

/// The code of that name, or a failure that suggests one.
pub fn code(name: &str) -> Result<Code, Failure> {
    Code::from_name(name).ok_or_else(|| {
        let hint = match similar::closest(name, Code::ALL.iter().map(|code| code.name())) {
            Some(close) => format!("did you mean `{close}`?"),
            None => "`toolgate explain` lists all codes".into(),
        };
        Failure::new(format!("unknown code `{}`; {hint}", visible(name)))
    })
}

fn explain(code: Code, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let (bold, style) = (terminal.palette.bold, style_of(code, terminal));
    let severity = severity_name(code.severity());
    writeln!(terminal, "{style}{severity}{style:#} {bold}{}{bold:#}: {}\n", code.name(), code.title())?;
    for paragraph in code.explanation().split("\n\n") {
        writeln!(terminal, "{}\n", fill(paragraph, LINE))?;
    }
    let remark = match code.severity() {
        Severity::Error => "A document with this finding is refused; it cannot be allowed.",
        Severity::Warning if code.may_block_publishing() => {
            "`toolgate check` passes a document with this finding; `toolgate publish` may want `--accept` for it."
        }
        Severity::Warning => "A document with this finding is accepted.",
    };
    writeln!(terminal, "{remark}")?;
    if code.severity() == Severity::Warning {
        writeln!(terminal, "`toolgate check --allow {}` leaves it out.", code.name())?;
    }
    Ok(Ending::Clean)
}

fn list(terminal: &mut Terminal) -> Result<Ending, Failure> {
    let widest = Code::ALL.iter().map(|code| code.name().len()).max().unwrap_or_default();
    for code in Code::ALL {
        let style = style_of(*code, terminal);
        let severity = severity_name(code.severity());
        writeln!(terminal, "{style}{severity:<7}{style:#}  {:<widest$}  {}", code.name(), code.title())?;
    }
    Ok(Ending::Clean)
}

fn style_of(code: Code, terminal: &Terminal) -> anstyle::Style {
    match code.severity() {
        Severity::Error => terminal.palette.error,
        Severity::Warning => terminal.palette.warning,
    }
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
