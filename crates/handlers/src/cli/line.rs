//! What is the command line of this call? The author's elements with the caller's values in their places, and nothing
//! that changes what the elements are.

pub mod arg;
pub mod code_command;
pub mod danger_texts;
pub mod path_arguments;
pub mod search_terms;
pub mod short_options;
pub mod static_variables;

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolgate_gate::Refusal;
use toolgate_spec::{
    ArgPart, ArgTemplate,
    model::{Argument, ArgumentGroup},
};

use self::arg::{Arg, ArgText, Dashes, refused, text_of, would_be_an_option};
use crate::{cli::program::conventions::Known, survey::CallGrants};

/// What the names in templates stand for.
pub struct Values<'c> {
    /// Static variables win over arguments of the same name.
    pub statics: &'c Map<String, Value>,
    pub arguments: &'c Map<String, Value>,
    /// Names of arguments that are paths; they become the paths that were found and opened.
    pub paths: &'c BTreeSet<String>,
    pub granted: &'c CallGrants,
}

/// Nothing is said twice here: what is not given is absent, and so is an empty text.
impl<'c> Values<'c> {
    pub fn given(&self, name: &str) -> Option<&'c Value> {
        let value = self.statics.get(name).or_else(|| self.arguments.get(name))?;
        let is_absent = value.is_null() || value.as_str().is_some_and(str::is_empty);
        (!is_absent).then_some(value)
    }

    /// Could a text for standard input or a variable be made? Names that stand for secrets are passed over.
    pub fn check(&self, template: &ArgTemplate) -> Result<(), Refusal> {
        for name in template.names() {
            if let Some(value) = self.given(name).filter(|_| !self.statics.contains_key(name)) {
                arg::check_text(name, &self.text(name, value)?)?;
            }
        }
        Ok(())
    }

    /// The same for a variable. Programs read options out of variables too, of names that nobody has listed, so what begins one,
    /// or a setting or word in it, is no option. A number is none.
    pub fn check_variable(&self, template: &ArgTemplate) -> Result<(), Refusal> {
        self.check(template)?;
        let mut begins = true;
        for part in template.parts() {
            match part {
                ArgPart::Literal(text) => begins = ends_before_a_word(text, begins),
                ArgPart::Variable(name) => {
                    // A path becomes the one that was found, and begins with `/`.
                    let is_callers = !self.statics.contains_key(name) && !self.paths.contains(name);
                    let of_caller = self.given(name).filter(|_| is_callers).and_then(Value::as_str);
                    if of_caller.is_some_and(|text| has_option(text, begins)) {
                        return Err(would_be_an_option(name));
                    }
                    begins = of_caller.is_some_and(|text| ends_before_a_word(text, begins));
                }
            }
        }
        Ok(())
    }

    pub fn is_callers(&self, name: &str) -> bool {
        !self.statics.contains_key(name) && self.arguments.contains_key(name)
    }

    /// A text for standard input or a variable, as far as it is known before secrets are looked up.
    pub fn known_text(&self, template: &ArgTemplate) -> Result<String, Refusal> {
        let mut text = String::new();
        for part in template.parts() {
            match part {
                ArgPart::Literal(literal) => text.push_str(literal),
                ArgPart::Variable(name) => {
                    if let Some(value) = self.given(name) {
                        text.push_str(&self.text(name, value)?);
                    }
                }
            }
        }
        Ok(text)
    }

    /// A value as it comes to stand in a text.
    fn text(&self, name: &str, value: &Value) -> Result<String, Refusal> {
        let text = text_of(value).map_err(|(why, remedy)| refused(format!("`{name}` {why}"), remedy))?;
        if !self.paths.contains(name) || self.statics.contains_key(name) {
            return Ok(text);
        }
        // One argument may be read and written; both lead to the same place.
        let found = self.granted.paths.iter().find(|path| path.asked == text);
        let found = found.ok_or_else(|| {
            refused(format!("`{name}` names a path that nobody looked at"), "name a path of this tool")
        })?;
        Ok(found.real.clone())
    }
}

/// `begins`: whether the text itself begins a word.
fn has_option(text: &str, begins: bool) -> bool {
    let mut begins = begins;
    text.chars().any(|c| {
        let is_option = begins && c == '-';
        begins = c.is_whitespace();
        is_option
    })
}

fn ends_before_a_word(text: &str, begins: bool) -> bool {
    text.chars().next_back().map_or(begins, |end| end == '=' || end.is_whitespace())
}

/// The elements of a manifest, filled in.
pub fn fill(groups: &[ArgumentGroup], values: &Values<'_>) -> Result<Vec<Arg>, Refusal> {
    let mut filled = Vec::new();
    for group in groups {
        match group {
            ArgumentGroup::One(one) => filled.push(element(one, values, None)?),
            ArgumentGroup::When { param, args } => {
                let is_wanted = values.given(param).is_some_and(|value| value != &Value::Bool(false));
                for one in args.iter().filter(|_| is_wanted) {
                    filled.push(element(one, values, None)?);
                }
            }
            ArgumentGroup::Each { param, args } => {
                let items = values.given(param).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                for item in items {
                    for one in args {
                        filled.push(element(one, values, Some((param, item)))?);
                    }
                    too_many(filled.len())?;
                }
            }
        }
    }
    Ok(filled)
}

/// The command line without its first element, checked, with `--` where it belongs.
pub fn settle(elements: &[Arg], known: &Known) -> Result<Vec<String>, Refusal> {
    let mut line = Vec::with_capacity(elements.len() + 1);
    let dashes_at = dashes_at(elements, known);
    // The option whose value comes next.
    let mut option: Option<&str> = None;
    for (index, element) in elements.iter().enumerate() {
        if dashes_at == Some(index) {
            line.push("--".to_owned());
        }
        if index == 0 && element.is_filled_operand() && known.reads_first_as_options() {
            return Err(refused(
                format!("`{element}` would be taken for options"),
                "the author writes the options of this command out",
            ));
        }
        let text = element.settle(known)?;
        if let Some((why, remedy)) = operand(element, &text, known)
            .filter(|_| option.is_none())
            .and_then(|one| known.refuses_operand(one))
        {
            return Err(refused(format!("`{element}` {why}"), remedy));
        }
        let names_file = |(before, part): (String, &str)| known.refuses_file(option, (&before, part), &text);
        if let Some(why) = element.filled_parts().into_iter().find_map(names_file) {
            return Err(refused(
                format!("`{element}` {why}"),
                "write data as `name=value`, and no file's name",
            ));
        }
        option = match option {
            Some(_) => None,
            None => element.as_literal().filter(|literal| known.takes_next(literal)),
        };
        line.push(text);
    }
    too_many(line.len())?;
    let bytes: usize = line.iter().map(|element| element.len() + 1).sum();
    if bytes > MOST_BYTES {
        let message = format!("the command line would have {bytes} bytes; {MOST_BYTES} are the most");
        return Err(refused(message, "give shorter or fewer values"));
    }
    Ok(line)
}

/// What of the element is an operand that a caller begins.
fn operand<'t>(element: &Arg, text: &'t str, known: &Known) -> Option<&'t str> {
    if element.begins_with_value() {
        return Some(text);
    }
    let option = known.operand_option()?;
    element.filled_parts().iter().any(|(before, _)| before == option).then(|| text.strip_prefix(option))?
}

/// Text for standard input or a variable, which `check` has let pass. `None` where it is one optional value that is not given.
pub fn text(template: &ArgTemplate, values: &Values<'_>) -> Result<Option<String>, Refusal> {
    if let Some(whole) = template.whole()
        && values.given(whole).is_none()
    {
        return Ok(None);
    }
    let mut text = String::new();
    for part in template.parts() {
        match part {
            ArgPart::Literal(literal) => text.push_str(literal),
            ArgPart::Variable(name) => {
                let value = values.given(name).ok_or_else(|| is_missing(name))?;
                text.push_str(&values.text(name, value)?);
            }
        }
    }
    Ok(Some(text))
}

fn element(
    argument: &Argument,
    values: &Values<'_>,
    item: Option<(&String, &Value)>,
) -> Result<Arg, Refusal> {
    let mut parts = Vec::new();
    for part in argument.template.parts() {
        parts.push(match part {
            ArgPart::Literal(text) => ArgText::Author(text.clone()),
            ArgPart::Variable(variable) => {
                let (name, value) = match item {
                    Some((list, item)) if variable == ITEM => (list, Some(item)),
                    _ => (variable, values.given(variable)),
                };
                let text = values.text(name, value.ok_or_else(|| is_missing(name))?)?;
                if values.statics.contains_key(name) {
                    ArgText::Author(text)
                } else {
                    ArgText::Caller { name: name.clone(), text }
                }
            }
        });
    }
    let dashes = if argument.may_be_option { Dashes::Meant } else { Dashes::Refused };
    Ok(Arg::of(parts, dashes))
}

/// Where `--` is put: before the first operand with a caller's value, if the program ends its options there, the author
/// wrote none, and no option comes after it.
fn dashes_at(elements: &[Arg], known: &Known) -> Option<usize> {
    if !known.ends_options_at_dashes() || elements.iter().any(|element| element.as_literal() == Some("--")) {
        return None;
    }
    let mut is_value = false;
    let mut first = None;
    for (index, element) in elements.iter().enumerate() {
        let is_operand = element.is_filled_operand() && !is_value;
        is_value = !is_value && element.as_literal().is_some_and(|literal| known.takes_next(literal));
        if is_operand {
            first = Some(index);
            break;
        }
    }
    first.filter(|first| !elements.iter().skip(*first).any(Arg::may_be_option))
}

fn too_many(elements: usize) -> Result<(), Refusal> {
    if elements <= MOST_ELEMENTS {
        return Ok(());
    }
    let message = format!("the command line would have more than {MOST_ELEMENTS} elements");
    Err(refused(message, "give fewer values"))
}

fn is_missing(name: &str) -> Refusal {
    refused(format!("`{name}` is empty or missing"), "give it a value")
}

/// What an element is called inside `each`.
pub(super) const ITEM: &str = "item";
const MOST_ELEMENTS: usize = 1_000;
const MOST_BYTES: usize = 64 << 10;
