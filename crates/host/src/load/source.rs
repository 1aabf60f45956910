//! One tool that was found, and its judgement without regard to the other tools.

use std::{
    path::Path,
    sync::{Arc, LazyLock},
};

use toolgate_config::Config;
use toolgate_gate::{Candidate, ListPosition, Unfit};
use toolgate_handlers::check_variables;
use toolgate_spec::{ToolCheck, is_deceptive};

use super::{InCode, Origin, Surveyed, is_javascript, rules::Rules};
use crate::{
    catalog,
    documents::{Document, Documents, TouchedFile},
    exposure,
    parallel::in_parallel,
};

/// A tool that was found.
pub(super) struct Source<'d> {
    pub position: ListPosition,
    pub check: &'d ToolCheck,
    /// Only of a tool from a file.
    pub document: Option<&'d Arc<Document>>,
    pub is_shipped: bool,
}

/// The result for one tool.
pub(super) struct Judged {
    /// Its name cannot be used.
    pub refusal: Option<String>,
    /// It asks for a variable of the gateway.
    pub asks_for_own: Option<String>,
    pub candidate: Result<Candidate, Unfit>,
}

/// All tools in order.
pub(super) fn all<'d>(
    config: &Config,
    documents: &'d Documents,
    in_code: &'d InCode,
) -> impl Iterator<Item = Source<'d>> {
    let shipped = chosen_shipped(config).enumerate().map(|(index, check)| Source::shipped(index, check));
    let found = documents.tools().map(|(root, index, document)| Source::of_file(root, index, document));
    let of_program = in_code.checks.iter().enumerate().map(|(index, check)| Source::of_program(index, check));
    shipped.chain(found).chain(of_program)
}

/// Judges tools, on several threads if there are many.
pub(super) fn judge(sources: &[&Source<'_>], rules: &Rules) -> Vec<Judged> {
    in_parallel(sources, |source| source.judged(rules))
}

impl<'d> Source<'d> {
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
    ) -> impl Iterator<Item = Source<'d>> {
        let root = file.root;
        documents.iter().enumerate().map(move |(index, document)| Self::of_file(root, index, document))
    }

    /// The tool that was found at a position before.
    pub fn again(position: &ListPosition, tool: &'d Surveyed, in_code: &'d InCode) -> Option<Self> {
        let (check, document) = match (&tool.origin, &tool.document) {
            (Origin::File(_), Some(document)) => (&document.check, Some(document)),
            (Origin::File(_), None) => return None,
            (Origin::Shipped, _) => {
                let shipped = catalog::shipped_tools().iter().find(|shipped| shipped.name == tool.name)?;
                (&shipped.check, None)
            }
            (Origin::Program, _) => (in_code.checks.get(position.index)?, None),
        };
        let is_shipped = tool.origin == Origin::Shipped;
        Some(Self { position: position.clone(), check, document, is_shipped })
    }

    /// Is this the very document that `known` was judged from?
    pub fn is_same_as(&self, known: &Surveyed) -> bool {
        match (&known.document, self.document) {
            (Some(known), Some(document)) => Arc::ptr_eq(known, document),
            // Documents in code never change, and neither do names.
            (known_document, document) => {
                known_document.is_none() && document.is_none() && known.name == self.check.name
            }
        }
    }

    pub fn origin(&self) -> Origin {
        match self.document {
            Some(document) => Origin::File(document.file.to_path_buf()),
            None if self.is_shipped => Origin::Shipped,
            None => Origin::Program,
        }
    }

    /// The tool with this result.
    pub fn surveyed(&self, candidate: Result<Candidate, String>, config: &Config) -> Surveyed {
        Surveyed {
            name: self.check.name.clone(),
            origin: self.origin(),
            is_exposed: is_exposed(config, &candidate),
            candidate,
            document: self.document.cloned(),
        }
    }

    /// Why the tool cannot be used, and whether that is a mistake in its document.
    pub fn explain(&self, unfit: Unfit) -> (String, bool) {
        match unfit {
            Unfit::Findings(findings) => {
                let first = findings.first();
                (first.map_or_else(|| "it has errors".to_owned(), |one| one.message.clone()), true)
            }
            // A command can be missing on this machine only. Features of JavaScript are the same everywhere.
            Unfit::NotOffered(what) => (what, is_javascript(self.check)),
            Unfit::Unreadable(what) => (what, true),
        }
    }

    fn judged(&self, rules: &Rules) -> Judged {
        let spec = self.check.spec.as_ref().filter(|_| !self.is_shipped);
        Judged {
            refusal: if self.is_shipped { None } else { refused_name(self.check) },
            asks_for_own: spec.and_then(|spec| check_variables(spec, rules.workshop.secrets.as_ref()).err()),
            candidate: rules.workshop.assess(self.check),
        }
    }
}

pub(super) fn is_exposed(config: &Config, candidate: &Result<Candidate, String>) -> bool {
    let exposure = &config.exposure;
    candidate.as_ref().is_ok_and(|candidate| exposure::is_exposed(exposure, candidate.tool.spec()))
}

/// The shipped tools that the configuration chooses, in order.
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

/// Why a tool may not have its name: it deceives the eye, or it belongs to a shipped tool.
fn refused_name(check: &ToolCheck) -> Option<String> {
    if let Some(unseen) = check.name.chars().find(|character| is_deceptive(*character)) {
        return Some(format!(
            "its name holds a character that nobody sees, U+{:04X}; write the name without it",
            u32::from(unseen)
        ));
    }
    catalog::reserved_name(check).map(|finding| format!("{}; {}", finding.message, finding.remedy))
}

/// The sections of lists: shipped tools, then one section for each configured path, then tools of the program.
const SHIPPED: usize = 0;
const FIRST_ROOT: usize = 1;
const OF_PROGRAM: usize = usize::MAX;

static NO_FILE: LazyLock<Arc<Path>> = LazyLock::new(|| Arc::from(Path::new("")));
