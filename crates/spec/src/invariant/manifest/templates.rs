//! Does every `{name}` stand for something, and is there always something to put there?

use serde_json::Value;

use super::{
    report::Report,
    scope::{Meaning, Scope, Shape},
};
use crate::{Pointer, arg_template::ArgTemplate};

/// The rules of the place where a template stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    /// What is done with a value that is absent.
    pub absent: Absent<'p>,
    /// What may fill the whole of it.
    pub whole: Whole,
    /// Inside `each`: `item` is an element of this parameter.
    pub item_of: Option<&'p str>,
}

#[derive(Clone, Copy)]
pub(super) enum Absent<'p> {
    /// There must be a value, except for the parameter that a `when` around it asks for.
    Refused { guarded: Option<&'p str> },
    /// An entry that is one parameter and nothing else is left out.
    LeftOut,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Whole {
    /// One piece of text.
    Text,
    /// One piece of text, or a list that repeats the entry.
    Repeated,
    /// Any JSON.
    Json,
}

/// Names seen so far, so that a parameter which nothing uses can be reported.
#[derive(Default)]
pub(super) struct Used(Vec<String>);

impl Used {
    pub fn add(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    /// A parameter without effect misleads whoever calls the tool.
    pub fn report_unused(&self, scope: &Scope, report: &mut Report<'_>) {
        for variable in &scope.variables {
            if !variable.name.is_empty() && !self.0.contains(&variable.name) {
                report.say(
                    &variable.at,
                    format!("the handler never uses `{}`", variable.name),
                    format!("put `{{{}}}` where it belongs, or remove it", variable.name),
                );
            }
        }
    }
}

pub(super) fn check(
    template: &ArgTemplate,
    at: &Pointer,
    place: Place<'_>,
    scope: &Scope,
    used: &mut Used,
    report: &mut Report<'_>,
) {
    let is_whole = template.whole().is_some();
    let mut seen: Vec<&str> = Vec::new();
    for name in template.names() {
        used.add(name);
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        if name == ITEM && place.item_of.is_some() {
            continue;
        }
        match scope.meaning(name) {
            None => unknown(name, at, scope, report),
            Some(Meaning::Operator { .. }) => {}
            Some(Meaning::Caller(variable)) => {
                let has_place = match variable.shape {
                    Shape::Array => is_whole && place.whole != Whole::Text,
                    Shape::Object | Shape::Unknown => is_whole && place.whole == Whole::Json,
                    Shape::Text | Shape::Boolean | Shape::Plain => true,
                };
                if !has_place {
                    misshapen(name, variable.shape, at, report);
                }
                let may_be_absent = match place.absent {
                    Absent::Refused { guarded } => guarded == Some(name),
                    Absent::LeftOut => is_whole,
                };
                if !variable.is_required && !may_be_absent {
                    optional(name, place.absent, at, report);
                }
            }
        }
    }
}

/// Every text inside a JSON body; member names are no templates.
pub(super) fn check_json(
    body: &Value,
    at: &Pointer,
    scope: &Scope,
    used: &mut Used,
    report: &mut Report<'_>,
) {
    match body {
        Value::String(text) => match ArgTemplate::parse(text) {
            Ok(template) => {
                let place = Place { absent: Absent::LeftOut, whole: Whole::Json, item_of: None };
                check(&template, at, place, scope, used, report);
            }
            Err(why) => report.say(
                at,
                format!("not a template: {why}"),
                "`{name}` stands for a parameter or static variable",
            ),
        },
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_json(item, &at.index(index), scope, used, report);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                if names_something(key, scope) {
                    report.say_of_key(
                        &at.key(key),
                        format!("member name `{}` is no template", key.escape_debug()),
                        "only values are filled in; write the name out",
                    );
                }
                check_json(member, &at.key(key), scope, used, report);
            }
        }
        _ => {}
    }
}

/// Does a text that is no template look like one?
pub(super) fn names_something(text: &str, scope: &Scope) -> bool {
    scope.names().any(|name| text.contains(&format!("{{{name}}}")))
}

/// Values that only the operator may choose.
pub(super) fn check_fixed(template: &ArgTemplate, at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    for name in template.names() {
        match scope.meaning(name) {
            None => unknown(name, at, scope, report),
            Some(Meaning::Operator { .. }) => {}
            Some(Meaning::Caller(_)) => report.say(
                at,
                format!("`{{{name}}}` is chosen by the caller, and the server is shared by all calls"),
                "use a static variable",
            ),
        }
    }
}

/// The names of caller's variables in a template, each as it stands.
pub(super) fn chosen_by_caller<'t>(
    template: &'t ArgTemplate,
    scope: &'t Scope,
) -> impl Iterator<Item = &'t str> {
    template.names().filter(|name| matches!(scope.meaning(name), Some(Meaning::Caller(_)) | None))
}

pub(super) fn has_secret(template: &ArgTemplate, scope: &Scope) -> bool {
    template.names().any(|name| matches!(scope.meaning(name), Some(Meaning::Operator { is_secret: true })))
}

fn unknown(name: &str, at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    let remedy = match crate::similar::closest(name, scope.names()) {
        Some(close) => format!("did you mean `{{{close}}}`?"),
        None if name == ITEM => "`{item}` stands inside `each` only".into(),
        None => "declare it in `params`, `input` or `staticVariables`, or write `{{` for a brace".into(),
    };
    report.say(at, format!("`{{{name}}}` names no parameter and no static variable"), remedy);
}

fn misshapen(name: &str, shape: Shape, at: &Pointer, report: &mut Report<'_>) {
    let (what, remedy) = match shape {
        Shape::Array => ("a list", "write `{each: NAME, args: [\"{item}\"]}` in `args`".into()),
        Shape::Unknown => ("of no certain type", format!("give `{name}` one `type` in `input`")),
        _ => ("an object", "declare its parts as parameters of their own".into()),
    };
    report.say(at, format!("`{name}` is {what} and cannot stand in a text"), remedy);
}

fn optional(name: &str, absent: Absent<'_>, at: &Pointer, report: &mut Report<'_>) {
    let remedy = match absent {
        Absent::Refused { .. } => {
            format!("make it required, or write `{{when: {name}, args: [...]}}` around it in `args`")
        }
        Absent::LeftOut => {
            format!("make it required, or let `{{{name}}}` be the whole value, which is left out without it")
        }
    };
    report.say(at, format!("`{name}` is optional, and nothing says what stands here without it"), remedy);
}

/// What templates inside `each` call the element.
pub(super) const ITEM: &str = "item";
