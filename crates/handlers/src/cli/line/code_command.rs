//! What is judged of a command that code makes? The same as of a manifest's, of which the templates were looked at before.

use toolgate_gate::Refusal;
use toolgate_spec::{
    ArgTemplate, decides_what_runs,
    model::{CliHandler, ToolSpec},
    project,
};

use super::arg::Arg;
use crate::cli::program::conventions::Known;

/// Variables and standard input, when the tool is made ready.
pub fn check(written: &CliHandler, spec: &ToolSpec) -> Result<(), String> {
    let input = project::input_schema(spec).map_err(|error| error.to_string())?;
    let statics = spec.effective_statics();
    let is_operators = |name: &str| statics.iter().any(|variable| variable.name == name);
    let is_argument = |name: &str| input.get("properties").and_then(|all| all.get(name)).is_some();
    let templates = written.env.iter().map(|variable| &variable.value).chain(&written.stdin);
    let mut names = templates.flat_map(ArgTemplate::names);
    if let Some(unknown) = names.find(|name| !is_operators(name) && !is_argument(name)) {
        return Err(format!("`{{{unknown}}}` names no argument and no static variable"));
    }
    for variable in &written.env {
        let name = &variable.name;
        if !is_variable(name) {
            return Err(format!("`{}` is not an environment variable", name.escape_debug()));
        }
        if decides_what_runs(name) && variable.value.names().any(|filled| !is_operators(filled)) {
            return Err(format!("`{name}` would let the caller choose what runs; write its value out"));
        }
    }
    Ok(())
}

/// The elements of one call.
pub fn check_elements(elements: &[Arg], known: &Known) -> Result<(), Refusal> {
    elements.iter().try_for_each(|element| element.check_option(known))
}

fn is_variable(name: &str) -> bool {
    let is_sign = |sign: u8| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == b'_';
    name.bytes().next().is_some_and(|first| !first.is_ascii_digit()) && name.bytes().all(is_sign)
}
