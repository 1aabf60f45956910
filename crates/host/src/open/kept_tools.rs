//! Decides which live tools stay when a reload cannot apply as a whole.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use toolgate_config::Config;
use toolgate_gate::{LiveTool, Publisher};

use super::Toolgate;
use crate::{
    exposure::is_exposed,
    load::{FoundTools, Loaded, LoadedTool, ToolOrigin},
};

/// The live tools that may stay. Lookups take constant time, because every live tool is checked.
pub(super) struct KeptTools<'l> {
    published: HashMap<String, String>,
    found: HashMap<&'l str, &'l LoadedTool>,
    mistakes: HashSet<&'l str>,
    /// The files of the active tools, by tool name. Filled only if a file cannot be read.
    files_before: HashMap<String, PathBuf>,
    loaded: &'l Loaded,
    config: &'l Config,
    publisher: &'l Publisher,
}

impl Toolgate {
    pub(super) fn kept_tools<'l>(
        &self,
        loaded: &'l Loaded,
        config: &'l Config,
        publisher: &'l Publisher,
    ) -> KeptTools<'l> {
        let files_before =
            if loaded.unread.is_empty() { HashMap::new() } else { files(&self.loaded().tools) };
        KeptTools {
            published: self.state.published_digests().unwrap_or_default(),
            found: loaded.tools.iter().map(|tool| (tool.name.as_str(), tool.as_ref())).collect(),
            mistakes: loaded.problems.iter().map(|problem| problem.what.as_str()).collect(),
            files_before,
            loaded,
            config,
            publisher,
        }
    }
}

impl KeptTools<'_> {
    pub fn includes(&self, tool: &LiveTool) -> bool {
        if !is_published(&self.published, tool) || !is_exposed(&self.config.exposure, tool.spec()) {
            return false;
        }
        let found = self.found.get(tool.spec().name.as_str());
        match found.map(|found| &found.candidate) {
            Some(Ok(candidate)) => candidate.lifecycle.state.is_exposed() && candidate.tool.is_same_as(tool),
            // The document has an error now. Keep its last good version.
            Some(Err(problem)) => {
                self.mistakes.contains(problem.as_str()) && self.publisher.is_under_current_policy(tool)
            }
            None => self.is_in_unread_file(tool) && self.publisher.is_under_current_policy(tool),
        }
    }

    /// Whether the tool came from a file that cannot be read now.
    fn is_in_unread_file(&self, tool: &LiveTool) -> bool {
        let file = self.files_before.get(tool.spec().name.as_str());
        let is_below = |file: &Path| self.loaded.unread.iter().any(|unread| file.starts_with(&unread.place));
        file.is_some_and(|file| is_below(file))
    }
}

/// The files by tool name. The first tool of a name wins.
fn files(tools: &FoundTools) -> HashMap<String, PathBuf> {
    let mut files = HashMap::with_capacity(tools.len());
    for tool in tools {
        if let ToolOrigin::File(file) = &tool.origin {
            files.entry(tool.name.clone()).or_insert_with(|| file.clone());
        }
    }
    files
}

/// Whether this version of the tool is still published.
pub(super) fn is_published(published: &HashMap<String, String>, tool: &LiveTool) -> bool {
    published.get(tool.spec().id.as_str()).is_some_and(|digest| digest == tool.digest())
}
