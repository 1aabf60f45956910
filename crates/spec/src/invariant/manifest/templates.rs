//! Checks that every `{name}` in a template is declared and always has a value.

use serde_json::Value;

use super::{
    report::ManifestReport,
    scope::{NameMeaning, TemplateScope, ValueShape},
};
use crate::{Pointer, arg_template::ArgTemplate};

/// The rules for the position of a template.
#[derive(Clone, Copy)]
pub(super) struct TemplateRules<'p> {
    /// The rule for an absent value.
    pub absent: Absent<'p>,
    /// Which values may fill the whole entry.
    pub whole: WholeValue,
    /// Inside `each`: `item` is an element of this parameter.
    pub item_of: Option<&'p str>,
}

#[derive(Clone, Copy)]
pub(super) enum Absent<'p> {
    /// A value is required, except for the parameter of an enclosing `when`.
    Refused { guarded: Option<&'p str> },
    /// An entry that consists of one parameter is left out.
    LeftOut,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum WholeValue {
    /// One piece of text.
    Text,
    /// One piece of text, or a list that repeats the entry.
    Repeated,
    /// Any JSON.
    Json,
}

/// Names used so far, to report unused parameters.
#[derive(Default)]
pub(super) struct Used(Vec<String>);

impl Used {
    pub fn add(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    /// Reports parameters without effect, because they mislead callers.
    pub fn report_unused(&self, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
        for variable in &scope.variables {
            if !variable.name.is_empty() && !self.0.contains(&variable.name) {
                report.add(
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
    place: TemplateRules<'_>,
    scope: &TemplateScope,
    used: &mut Used,
    report: &mut ManifestReport<'_>,
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
            Some(NameMeaning::Operator { .. }) => {}
            Some(NameMeaning::Caller(variable)) => {
                let has_place = match variable.shape {
                    ValueShape::Array => is_whole && place.whole != WholeValue::Text,
                    ValueShape::Object | ValueShape::Unknown => is_whole && place.whole == WholeValue::Json,
                    ValueShape::Text | ValueShape::Boolean | ValueShape::Plain => true,
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

/// Checks every string inside a JSON body. Member names are not templates.
pub(super) fn check_json(
    body: &Value,
    at: &Pointer,
    scope: &TemplateScope,
    used: &mut Used,
    report: &mut ManifestReport<'_>,
) {
    match body {
        Value::String(text) => match ArgTemplate::parse(text) {
            Ok(template) => {
                let place = TemplateRules { absent: Absent::LeftOut, whole: WholeValue::Json, item_of: None };
                check(&template, at, place, scope, used, report);
            }
            Err(why) => report.add(
                at,
                format!("not a template: {why}"),
                "write `{name}` for a parameter or static variable",
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
                    report.add_at_key(
                        &at.key(key),
                        format!("member name `{}` must not be a template", key.escape_debug()),
                        "only values are filled in; write the name out",
                    );
                }
                check_json(member, &at.key(key), scope, used, report);
            }
        }
        _ => {}
    }
}

/// Whether text that is not a template looks like one.
pub(super) fn names_something(text: &str, scope: &TemplateScope) -> bool {
    scope.names().any(|name| text.contains(&format!("{{{name}}}")))
}

/// The caller variables in a template, in order.
pub(super) fn chosen_by_caller<'t>(
    template: &'t ArgTemplate,
    scope: &'t TemplateScope,
) -> impl Iterator<Item = &'t str> {
    template.names().filter(|name| matches!(scope.meaning(name), Some(NameMeaning::Caller(_)) | None))
}

pub(super) fn has_secret(template: &ArgTemplate, scope: &TemplateScope) -> bool {
    template
        .names()
        .any(|name| matches!(scope.meaning(name), Some(NameMeaning::Operator { is_secret: true })))
}

fn unknown(name: &str, at: &Pointer, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    let remedy = match crate::similar::closest(name, scope.names()) {
        Some(close) => format!("did you mean `{{{close}}}`?"),
        None if name == ITEM => "`{item}` is only available inside `each`".into(),
        None => "declare it in `params`, `input` or `staticVariables`, or write `{{` for a brace".into(),
    };
    report.add(at, format!("`{{{name}}}` is not a parameter or static variable"), remedy);
}

fn misshapen(name: &str, shape: ValueShape, at: &Pointer, report: &mut ManifestReport<'_>) {
    let (what, remedy) = match shape {
        ValueShape::Array => ("a list", "write `{each: NAME, args: [\"{item}\"]}` in `args`".into()),
        ValueShape::Unknown => ("of unknown type", format!("give `{name}` one `type` in `input`")),
        _ => ("an object", "declare its parts as separate parameters".into()),
    };
    report.add(at, format!("`{name}` is {what} and cannot be used inside text"), remedy);
}

fn optional(name: &str, absent: Absent<'_>, at: &Pointer, report: &mut ManifestReport<'_>) {
    let remedy = match absent {
        Absent::Refused { .. } => {
            format!("make it required, or write `{{when: {name}, args: [...]}}` around it in `args`")
        }
        Absent::LeftOut => {
            format!("make it required, or let `{{{name}}}` be the whole value, which is left out without it")
        }
    };
    report.add(at, format!("`{name}` is optional, and there is no value here if it is absent"), remedy);
}

/// The name of the element in templates inside `each`.
pub(super) const ITEM: &str = "item";
