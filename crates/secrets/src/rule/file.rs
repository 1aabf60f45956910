//! Appearance files of rules.

use std::fmt;

use serde::Deserialize;

use super::{SecretRule, compile::compile};
use crate::{check::RuleCheck, finding::Tier};

/// A JSON file of rules, with its name for error messages.
#[derive(Clone, Copy, Debug)]
pub struct RuleFile<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

/// Why the rules could not be loaded. None of them apply then.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleError {
    pub file: String,
    /// The id of the rule; empty if the whole file is invalid.
    pub rule: String,
    pub message: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if !self.rule.is_empty() {
            write!(f, "rule `{}`: ", self.rule)?;
        }
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for RuleError {}

/// A rule with its examples.
pub(crate) struct LoadedRule {
    pub file: String,
    pub rule: SecretRule,
    pub hits: Vec<String>,
    pub misses: Vec<String>,
}

impl LoadedRule {
    pub(crate) fn error(&self, message: impl Into<String>) -> RuleError {
        RuleError { file: self.file.clone(), rule: self.rule.id.to_string(), message: message.into() }
    }
}

pub(crate) fn read(file: RuleFile<'_>) -> Result<Vec<LoadedRule>, RuleError> {
    let error =
        |rule: &str, message| RuleError { file: file.name.to_owned(), rule: rule.to_owned(), message };
    let parsed: FileText = serde_json::from_str(file.text)
        .map_err(|cause| error("", format!("not a file of rules: {cause}")))?;
    let loaded = parsed.rules.into_iter().map(|text| {
        let examples = [&text.examples.hit, &text.examples.miss]
            .map(|list| list.iter().map(RuleExample::text).collect::<Vec<_>>());
        let [hits, misses] = examples;
        let rule = compile(&text).map_err(|message| error(&text.id, message))?;
        if hits.is_empty() || misses.is_empty() {
            return Err(error(&text.id, "add at least one `hit` and one `miss` example".to_owned()));
        }
        Ok(LoadedRule { file: file.name.to_owned(), rule, hits, misses })
    });
    loaded.collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    rules: Vec<RuleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RuleText {
    pub id: String,
    pub provider: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub tier: Tier,
    pub unverified: Option<Tier>,
    #[serde(default)]
    pub keywords: Vec<String>,
    #[serde(default)]
    pub reach: usize,
    pub pattern: String,
    pub check: Option<RuleCheck>,
    pub context: Option<ContextText>,
    pub min_entropy: Option<f64>,
    examples: Examples,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ContextText {
    pub words: Vec<String>,
    pub within: usize,
    #[serde(default)]
    pub same_line: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Examples {
    hit: Vec<RuleExample>,
    miss: Vec<RuleExample>,
}

/// In pieces, so other scanners do not report the rule file as a leak.
#[derive(Deserialize)]
#[serde(untagged)]
enum RuleExample {
    Whole(String),
    Pieces(Vec<String>),
}

impl RuleExample {
    fn text(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Pieces(pieces) => pieces.concat(),
        }
    }
}
