//! What does a file of rules say, and is it sound?

use std::fmt;

use serde::Deserialize;

use super::{Rule, compile::compile};
use crate::{check::Check, finding::Tier};

/// A file of rules in JSON, and the name by which errors speak of it.
#[derive(Clone, Copy, Debug)]
pub struct RuleFile<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

/// Why rules could not be loaded. None are in force then.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleError {
    pub file: String,
    /// The id of the rule; empty where the file as a whole is wrong.
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

/// A rule with the examples that it has to pass.
pub(crate) struct Loaded {
    pub file: String,
    pub rule: Rule,
    pub hits: Vec<String>,
    pub misses: Vec<String>,
}

impl Loaded {
    pub(crate) fn error(&self, message: impl Into<String>) -> RuleError {
        RuleError { file: self.file.clone(), rule: self.rule.id.to_string(), message: message.into() }
    }
}

pub(crate) fn read(file: RuleFile<'_>) -> Result<Vec<Loaded>, RuleError> {
    let error =
        |rule: &str, message| RuleError { file: file.name.to_owned(), rule: rule.to_owned(), message };
    let parsed: FileText = serde_json::from_str(file.text)
        .map_err(|cause| error("", format!("not a file of rules: {cause}")))?;
    let loaded = parsed.rules.into_iter().map(|text| {
        let examples = [&text.examples.hit, &text.examples.miss]
            .map(|list| list.iter().map(Example::text).collect::<Vec<_>>());
        let [hits, misses] = examples;
        let rule = compile(&text).map_err(|message| error(&text.id, message))?;
        if hits.is_empty() || misses.is_empty() {
            return Err(error(&text.id, "give at least one example of a hit and one of a miss".to_owned()));
        }
        Ok(Loaded { file: file.name.to_owned(), rule, hits, misses })
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
    pub check: Option<Check>,
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
    hit: Vec<Example>,
    miss: Vec<Example>,
}

/// In pieces, so that a file of rules contains nothing that another scanner would take for a secret.
#[derive(Deserialize)]
#[serde(untagged)]
enum Example {
    Whole(String),
    Pieces(Vec<String>),
}

impl Example {
    fn text(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Pieces(pieces) => pieces.concat(),
        }
    }
}
