//! The listing of a server and the decisions of operators about it. One file per server in the state directory.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use toolgate_gate::{PassStore as _, StoredPass};
use toolgate_handlers::ListingObserver;
use toolgate_spec::model::ToolId;
use toolgate_store::{StateDb, write_atomic};
use toolgate_upstream::{Pin, ToolDefinition};

use crate::journal::FileJournal;

/// The tools of one server, by their names on the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpstreamListing {
    pub tools: BTreeMap<String, ListedUpstreamTool>,
}

/// A tool as the server listed it last, and as it was approved.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedUpstreamTool {
    /// `None` if the server no longer lists it.
    pub listed: Option<ToolDefinition>,
    pub approved: Option<ToolDefinition>,
    /// The name under which it was approved.
    pub name: Option<String>,
    /// The pin of a definition that an operator rejected.
    pub rejected: Option<String>,
}

/// The state of a tool's review.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReviewState {
    /// Never approved.
    New,
    Approved,
    /// The server changed it after the approval.
    Changed,
    Rejected,
    /// The server no longer lists it.
    Gone,
}

impl ReviewState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Approved => "approved",
            Self::Changed => "changed",
            Self::Rejected => "rejected",
            Self::Gone => "gone",
        }
    }
}

impl ListedUpstreamTool {
    pub fn state(&self) -> ReviewState {
        let Some(listed) = &self.listed else { return ReviewState::Gone };
        let pin = Pin::of(listed);
        match &self.approved {
            _ if self.rejected.as_deref() == Some(pin.as_str()) => ReviewState::Rejected,
            Some(approved) if Pin::of(approved) == pin => ReviewState::Approved,
            Some(_) => ReviewState::Changed,
            None => ReviewState::New,
        }
    }
}

impl UpstreamListing {
    /// Reads the stored listing. A missing file is an empty listing.
    pub fn read(state: &Path, upstream: &str) -> io::Result<Self> {
        let text = match fs::read_to_string(file(state, upstream)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let stored: Map<String, Value> = serde_json::from_str(&text)?;
        let tools = stored.into_iter().map(|(name, tool)| {
            let definition = |key: &str| tool.get(key).filter(|value| !value.is_null()).cloned();
            let definition = |key: &str| definition(key).and_then(|value| ToolDefinition::read(value).ok());
            let rejected = tool.get("rejected").and_then(Value::as_str).map(str::to_owned);
            let served = tool.get("name").and_then(Value::as_str).map(str::to_owned);
            let (listed, approved) = (definition("listed"), definition("approved"));
            (name, ListedUpstreamTool { listed, approved, name: served, rejected })
        });
        Ok(Self { tools: tools.collect() })
    }

    pub fn write(&self, state: &Path, upstream: &str) -> io::Result<()> {
        let tools: Map<String, Value> = self
            .tools
            .iter()
            .map(|(name, tool)| {
                let definition = |tool: &Option<ToolDefinition>| tool.as_ref().map(ToolDefinition::to_json);
                let (listed, approved) = (definition(&tool.listed), definition(&tool.approved));
                let stored = json!({
                    "listed": listed, "approved": approved, "name": tool.name, "rejected": tool.rejected,
                });
                (name.clone(), stored)
            })
            .collect();
        let file = file(state, upstream);
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        write_atomic(&file, serde_json::to_string_pretty(&tools)?.as_bytes())
    }

    /// Takes over what the server lists now.
    pub fn update(&mut self, tools: &[ToolDefinition]) {
        for tool in self.tools.values_mut() {
            tool.listed = None;
        }
        for tool in tools {
            let known = self.tools.entry(tool.name.clone()).or_insert(ListedUpstreamTool {
                listed: None,
                approved: None,
                name: None,
                rejected: None,
            });
            known.listed = Some(tool.clone());
        }
        self.tools.retain(|_, tool| tool.listed.is_some() || tool.approved.is_some());
    }
}

/// Stores every listing for the next review, and unpublishes tools that are not as they were approved.
#[derive(Debug)]
pub struct ListingWatch {
    pub directory: PathBuf,
    pub passes: Arc<StateDb>,
    pub journal: FileJournal,
}

impl ListingObserver for ListingWatch {
    fn listed(&self, upstream: &str, tools: &[ToolDefinition]) {
        // On an error the file stays as it was, and the next listing tries again. Calls compare pins in any case.
        let Ok(before) = UpstreamListing::read(&self.directory, upstream) else { return };
        let mut now = before.clone();
        now.update(tools);
        if now == before {
            return;
        }
        for (name, tool) in &now.tools {
            if before.tools.get(name).map(ListedUpstreamTool::state) == Some(tool.state()) {
                continue;
            }
            self.note_change(upstream, name, tool);
        }
        let _ = now.write(&self.directory, upstream);
    }
}

impl ListingWatch {
    fn note_change(&self, upstream: &str, tool: &str, listed: &ListedUpstreamTool) {
        let state = listed.state();
        if let (Some(name), ReviewState::Changed | ReviewState::Gone) = (&listed.name, state) {
            let _ = self.passes.revise(ToolId::of_name(name).as_str(), &|latest| {
                let latest = latest.ok_or("it was never approved")?;
                Ok(StoredPass { is_published: false, ..latest })
            });
        }
        let _ = self.journal.write(&json!({
            "kind": "upstream.listed", "upstream": upstream, "tool": tool, "state": state.name(),
        }));
    }
}

fn file(state: &Path, upstream: &str) -> PathBuf {
    state.join("upstreams").join(format!("{upstream}.json"))
}
