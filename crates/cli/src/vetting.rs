//! Shows the findings of `check` before a tool is published, and reads the codes that its operator accepts.

use std::io::Write;

use toolgate_gate::Candidate;
use toolgate_spec::Code;

use crate::{
    Failure,
    commands::explain,
    terminal::{Terminal, visible},
};

/// Whether a document may be tested and published.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Vetting {
    Fit,
    Refused,
}

/// The codes of `--accept`. A code that accepts nothing is an error.
pub fn accepted_codes(names: &[String]) -> Result<Vec<Code>, Failure> {
    let blocking = |name: &String| match explain::code(name)? {
        code if code.may_block_publishing() => Ok(code),
        code => Err(Failure::new(format!(
            "`{}` does not block publishing; leave out --accept for it",
            code.name()
        ))),
    };
    names.iter().map(blocking).collect()
}

/// Prints the findings of `check`, and what to do about those that block publishing.
pub fn vet(candidate: &Candidate, terminal: &mut Terminal) -> Result<Vetting, Failure> {
    let name = visible(&candidate.tool.spec().name);
    for finding in candidate.findings.iter() {
        let (code, at) = (finding.code.name(), visible(finding.at.as_str()));
        writeln!(terminal, "warning    {name}: {code} {at}: {}", visible(&finding.message))?;
        writeln!(terminal, "  remedy   {}", visible(&finding.remedy))?;
    }
    let codes = candidate.unaccepted_codes();
    if codes.is_empty() {
        return Ok(Vetting::Fit);
    }
    writeln!(terminal, "REFUSED    {name}: {} must be fixed or accepted", codes.join(", "))?;
    let flags = codes.join(" --accept ");
    writeln!(
        terminal,
        "  accept   read the text; if it is intended, run: toolgate publish {name} --accept {flags}"
    )?;
    Ok(Vetting::Refused)
}
