//! One tool that was found, and its assessment independent of other tools.

use std::{
    path::Path,
    sync::{Arc, LazyLock},
};

use toolgate_config::Config;
use toolgate_gate::{Candidate, ListPosition, Unpublishable};
use toolgate_handlers::check_variables;
use toolgate_spec::{ToolCheck, is_deceptive};

use super::{InCode, LoadedTool, ToolOrigin, is_javascript, rules::Rules};
use crate::{
    catalog,
    documents::{Document, Documents, TouchedFile},
    exposure,
    parallel::in_parallel,
};

/// A tool that was found.
pub(super) struct ToolSource<'d> {
    pub position: ListPosition,
    pub check: &'d ToolCheck,
    /// Set for a tool from a file.
    pub document: Option<&'d Arc<Document>>,
    pub is_shipped: bool,
}

/// The result of assessing one tool.
pub(super) struct ToolAssessment {
    /// Why its name is refused.
    pub refusal: Option<String>,
    /// The problem if it uses an environment variable of the gateway.
    pub asks_for_own: Option<String>,
    pub candidate: Result<Candidate, Unpublishable>,
}

/// All tools in order.
pub(super) fn all<'d>(
    config: &Config,
    documents: &'d Documents,
    in_code: &'d InCode,
) -> impl Iterator<Item = ToolSource<'d>> {
    let shipped = chosen_shipped(config).enumerate().map(|(index, check)| ToolSource::shipped(index, check));
    let found = documents.tools().map(|(root, index, document)| ToolSource::of_file(root, index, document));
    let of_program =
        in_code.checks.iter().enumerate().map(|(index, check)| ToolSource::of_program(index, check));
    shipped.chain(found).chain(of_program)
}

/// Assesses tools, on several threads if there are many.
pub(super) fn assess(sources: &[&ToolSource<'_>], rules: &Rules) -> Vec<ToolAssessment> {
    in_parallel(sources, |source| source.assess(rules))
}

impl<'d> ToolSource<'d> {
    fn shipped(index: usize, check: &'d ToolCheck) -> Self {
        let position = ListPosition { section: SHIPPED, file: Arc::clone(&NO_FILE), index };
        Self { position, check, document: None, is_shipped: true }
    }

    fn of_program(index: usize, check: &'d ToolCheck) -> Self {
        let position = ListPosition { section: OF_PROGRAM, file: Arc::clone(&NO_FILE), index };
        Self { position, check, document: None, is_shipped: false }
    }

    fn of_file(root: usize, index: usize, document: &'d Arc<Document>) -> Self {
        let section = root.saturating_add(FIRST_ROOT);
        let position = ListPosition { section, file: Arc::clone(&document.file), index };
        Self { position, check: &document.check, document: Some(document), is_shipped: false }
    }

    /// The tools of a file before an update, or after it.
    pub fn of_touched(
        file: &TouchedFile,
        documents: &'d [Arc<Document>],
    ) -> impl Iterator<Item = ToolSource<'d>> {
        let root = file.root;
        documents.iter().enumerate().map(move |(index, document)| Self::of_file(root, index, document))
    }

    /// The tool that the last load found at a position.
    pub fn again(position: &ListPosition, tool: &'d LoadedTool, in_code: &'d InCode) -> Option<Self> {
        let (check, document) = match (&tool.origin, &tool.document) {
            (ToolOrigin::File(_), Some(document)) => (&document.check, Some(document)),
            (ToolOrigin::File(_), None) => return None,
            (ToolOrigin::Shipped, _) => {
                let shipped = catalog::shipped_tools().iter().find(|shipped| shipped.name == tool.name)?;
                (&shipped.check, None)
            }
            (ToolOrigin::Program, _) => (in_code.checks.get(position.index)?, None),
        };
        let is_shipped = tool.origin == ToolOrigin::Shipped;
        Some(Self { position: position.clone(), check, document, is_shipped })
    }

    /// Whether `known` was assessed from this document.
    pub fn is_same_as(&self, known: &LoadedTool) -> bool {
        match (&known.document, self.document) {
            (Some(known), Some(document)) => Arc::ptr_eq(known, document),
            // Documents in code never change, so the name identifies them.
            (known_document, document) => {
                known_document.is_none() && document.is_none() && known.name == self.check.name
            }
        }
    }

    pub fn origin(&self) -> ToolOrigin {
        match self.document {
            Some(document) => ToolOrigin::File(document.file.to_path_buf()),
            None if self.is_shipped => ToolOrigin::Shipped,
            None => ToolOrigin::Program,
        }
    }

    /// The tool with this result.
    pub fn loaded_tool(&self, candidate: Result<Candidate, String>, config: &Config) -> LoadedTool {
        LoadedTool {
            name: self.check.name.clone(),
            origin: self.origin(),
            is_exposed: is_exposed(config, &candidate),
            candidate,
            document: self.document.cloned(),
        }
    }

    /// Why the tool cannot be used, and whether that is an error in its document.
    pub fn explain(&self, unfit: Unpublishable) -> (String, bool) {
        match unfit {
            Unpublishable::Findings(findings) => {
                let first = findings.first();
                (first.map_or_else(|| "it has errors".to_owned(), |one| one.message.clone()), true)
            }
            // A command may be missing on this host only. JavaScript features are the same everywhere.
            Unpublishable::NotOffered(what) => (what, is_javascript(self.check)),
            Unpublishable::Unreadable(what) => (what, true),
        }
    }

    fn assess(&self, rules: &Rules) -> ToolAssessment {
        let spec = self.check.spec.as_ref().filter(|_| !self.is_shipped);
        ToolAssessment {
            refusal: if self.is_shipped { None } else { refused_name(self.check) },
            asks_for_own: spec.and_then(|spec| check_variables(spec, rules.publisher.secrets.as_ref()).err()),
            candidate: rules.publisher.assess(self.check),
        }
    }
}

pub(super) fn is_exposed(config: &Config, candidate: &Result<Candidate, String>) -> bool {
    let exposure = &config.exposure;
    candidate.as_ref().is_ok_and(|candidate| exposure::is_exposed(exposure, candidate.tool.spec()))
}

/// The shipped tools that the configuration selects, in order.
fn chosen_shipped(config: &Config) -> impl Iterator<Item = &'static ToolCheck> {
    let shipped = catalog::shipped_tools();
    let specs = shipped.iter().filter_map(|tool| tool.check.spec.as_ref());
    let base = catalog::preset(config.catalog.preset.name()).unwrap_or_default();
    let chosen = exposure::choose(&config.catalog, &base, &specs);
    chosen
        .into_iter()
        .filter_map(|spec| shipped.iter().find(|tool| tool.name == spec.name))
        .map(|tool| &tool.check)
}

/// Why a name is refused: it has an invisible character, or it belongs to a shipped tool.
fn refused_name(check: &ToolCheck) -> Option<String> {
    if let Some(invisible) = check.name.chars().find(|character| is_deceptive(*character)) {
        return Some(format!(
            "its name contains an invisible character, U+{:04X}; remove it",
            u32::from(invisible)
        ));
    }
    catalog::reserved_name(check).map(|finding| format!("{}; {}", finding.message, finding.remedy))
}

/// The sections of a listing: shipped tools, then one section per configured path, then tools of the program.
const SHIPPED: usize = 0;
const FIRST_ROOT: usize = 1;
const OF_PROGRAM: usize = usize::MAX;

static NO_FILE: LazyLock<Arc<Path>> = LazyLock::new(|| Arc::from(Path::new("")));
