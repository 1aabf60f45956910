//! Binds the names that a body uses: arguments, and static variables with resolved placeholders. Placeholders are
//! resolved only here.

use serde_json::{Map, Value};
use toolgate_gate::{Reason, RunFailure};
use toolgate_policy::{Mask, SecretConsumer, SecretSource};
use toolgate_spec::{
    TemplatePart,
    model::{StaticVariable, ToolSpec},
};

use zeroize::Zeroizing;

use super::report;

/// Rejects a tool that uses a variable it can never get.
pub fn check_variables(spec: &ToolSpec, source: &dyn SecretSource) -> Result<(), String> {
    spec.required_environment().into_iter().find_map(|name| source.refusal(name)).map_or(Ok(()), Err)
}

/// The variables of a call, and the mask for their secrets.
pub struct BoundVariables {
    pub values: Map<String, Value>,
    pub mask: Mask,
    /// The secret values. A request header that contains one is a credential.
    pub sent: Vec<String>,
}

/// Null counts as absent, and so do blank texts of optional parameters. Static variables take precedence over
/// arguments. Placeholders in arguments are never resolved, otherwise a model could read the environment.
pub fn bind(
    spec: &ToolSpec,
    arguments: &Map<String, Value>,
    source: &dyn SecretSource,
) -> Result<BoundVariables, RunFailure> {
    let mut values = Map::new();
    for param in &spec.params {
        match arguments.get(&param.name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.trim().is_empty() && !param.required => {}
            Some(value) => {
                values.insert(param.name.clone(), value.clone());
            }
        }
    }
    let mut sent = Vec::new();
    let consumer = SecretConsumer::Tool(&spec.name);
    for variable in spec.effective_statics() {
        let value = resolve(variable, consumer, source, &mut sent)
            .map_err(|message| report::failure(Reason::MissingSecret, message))?;
        if value.trim().is_empty() {
            values.remove(&variable.name);
        } else {
            values.insert(variable.name.clone(), Value::String(value));
        }
    }
    Ok(BoundVariables { values, mask: Mask::new(&sent), sent })
}

/// A mask for all secrets that are set now, for texts that no run produced.
pub fn mask_of(spec: &ToolSpec, consumer: SecretConsumer<'_>, source: &dyn SecretSource) -> Mask {
    let names = spec.required_environment().into_iter();
    let set: Vec<Zeroizing<String>> = names.filter_map(|name| source.secret(name, consumer)).collect();
    Mask::new(&set.iter().flat_map(|value| worth_hiding(value)).collect::<Vec<_>>())
}

/// The value and its trimmed form, because values from files end with a line break that is trimmed before sending.
/// The lines of a longer text, such as a key, are secrets too.
fn worth_hiding(value: &str) -> Vec<String> {
    let lines = value.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
    let mut parts: Vec<String> = [value, value.trim()].into_iter().chain(lines).map(str::to_owned).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// Shorter lines, such as those of a list, would mask large parts of ordinary text.
const SHORTEST_LINE: usize = 8;

/// The variable's text, with its secrets added to `sent`; or an error if a secret is not set.
pub fn resolve(
    variable: &StaticVariable,
    consumer: SecretConsumer<'_>,
    source: &dyn SecretSource,
    sent: &mut Vec<String>,
) -> Result<String, String> {
    let mut text = String::new();
    for part in variable.value.parts() {
        match part {
            TemplatePart::Literal(literal) => text.push_str(literal),
            TemplatePart::Variable(name) => {
                let value = source.secret(name, consumer).filter(|value| !value.trim().is_empty());
                let value = value
                    .ok_or_else(|| source.refusal(name).unwrap_or_else(|| missing(&variable.name, name)))?;
                text.push_str(&value);
                sent.extend(worth_hiding(&value));
            }
        }
    }
    Ok(text)
}

/// For operators and authors; callers are not told the name.
fn missing(variable: &str, name: &str) -> String {
    format!("`{variable}` needs `{name}`, which is not set; run `toolgate secret set {name}`")
}
