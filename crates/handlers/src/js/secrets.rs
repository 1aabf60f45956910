//! What do the names of a body stand for? Arguments as they came; static variables with their placeholders resolved,
//! here and nowhere else.

use serde_json::{Map, Value};
use toolgate_spec::{
    TemplatePart,
    model::{StaticVariable, ToolSpec},
};

use toolgate_policy::{Mask, SecretConsumer, SecretSource};

use zeroize::Zeroizing;

use super::{Failure, FailureCode};

/// Before any call: does the tool ask for what it never gets?
pub fn check_variables(spec: &ToolSpec, source: &dyn SecretSource) -> Result<(), String> {
    spec.required_environment().into_iter().find_map(|name| source.refusal(name)).map_or(Ok(()), Err)
}

/// What the tool will see, and what nobody else may.
pub struct Bound {
    pub values: Map<String, Value>,
    pub mask: Mask,
    /// The secrets themselves: a request header that carries one is a credential.
    pub sent: Vec<String>,
}

/// Nulls count as absent, and so do blank texts that are not required. Static variables win over arguments of the same name; arguments are never
/// searched for placeholders, or a model could read the environment.
pub fn bind(
    spec: &ToolSpec,
    arguments: &Map<String, Value>,
    source: &dyn SecretSource,
) -> Result<Bound, Failure> {
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
            .map_err(|message| Failure::new(FailureCode::MissingSecret, message))?;
        if value.trim().is_empty() {
            values.remove(&variable.name);
        } else {
            values.insert(variable.name.clone(), Value::String(value));
        }
    }
    Ok(Bound { values, mask: Mask::new(&sent), sent })
}

/// Everything secret that is set just now, for texts about the tool that no run made.
pub fn mask_of(spec: &ToolSpec, source: &dyn SecretSource) -> Mask {
    let consumer = SecretConsumer::Tool(&spec.name);
    let names = spec.required_environment().into_iter();
    let set: Vec<Zeroizing<String>> = names.filter_map(|name| source.secret(name, consumer)).collect();
    Mask::new(&set.iter().flat_map(|value| worth_hiding(value)).collect::<Vec<_>>())
}

/// A value, and what is left of it once its surroundings are cut away: values from files end in a line break, and
/// whoever sends one trims it. The lines of a longer text, such as a key, are secret one by one.
fn worth_hiding(value: &str) -> Vec<String> {
    let lines = value.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
    let mut parts: Vec<String> = [value, value.trim()].into_iter().chain(lines).map(str::to_owned).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// Shorter lines, such as those of a list, would blank out half of every text.
const SHORTEST_LINE: usize = 8;

/// The variable's text, its secrets added to `sent`; or which of them is not set.
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
