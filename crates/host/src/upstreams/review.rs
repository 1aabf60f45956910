//! The review of upstream tools: an operator compares what a server lists, and approves or rejects each tool.

use std::{path::PathBuf, time::SystemTime};

use serde_json::{Value, json};
use toolgate_config::{Config, model::Upstream};
use toolgate_gate::{Candidate, Unpublishable};
use toolgate_handlers::Upstreams;
use toolgate_policy::RiskLevel;
use toolgate_spec::{
    Format, check,
    model::{Body, Handler},
};
use toolgate_store::write_atomic_no_follow;
use toolgate_upstream::{Pin, ServerIdentity, ToolChange, ToolDefinition, compare};

use super::{ReviewState, UpstreamDocument, UpstreamListing, tool_document};
use crate::Toolgate;

/// The tools of a server as they are now, judged like every other document.
#[derive(Debug)]
pub struct UpstreamReview {
    pub server: ServerIdentity,
    pub tools: Vec<ReviewedTool>,
}

/// One tool of a server under review.
#[derive(Debug)]
pub struct ReviewedTool {
    pub upstream: String,
    /// Its name on the server.
    pub tool: String,
    pub state: ReviewState,
    /// `None` if the server no longer lists it.
    pub definition: Option<ToolDefinition>,
    /// The differences from the approved definition.
    pub changes: Vec<ToolChange>,
    /// The document that an approval publishes, and its judgement; or why there is none.
    pub judged: Result<(UpstreamDocument, Candidate), String>,
}

impl Toolgate {
    /// The configured upstream servers.
    pub fn upstreams(&self) -> &Upstreams {
        &self.handlers().mcp.upstreams
    }

    /// Starts the server if needed, lists its tools, and judges them.
    pub async fn review_upstream(&self, name: &str) -> Result<UpstreamReview, String> {
        let config = self.config();
        let upstream = configured(&config, name)?;
        let (server, tools) = self.upstreams().list(name).await?;
        let mut listing =
            UpstreamListing::read(&config.state, name).map_err(|error| unreadable(name, &error))?;
        listing.update(&tools);
        listing.write(&config.state, name).map_err(|error| unreadable(name, &error))?;
        let tools = listing.tools.into_iter().map(|(tool, listed)| {
            let changes = match (&listed.approved, &listed.listed) {
                (Some(before), Some(now)) => compare(before, now),
                _ => Vec::new(),
            };
            let judged = match &listed.listed {
                Some(definition) => self.judge(&config, upstream, definition),
                None => Err("the server no longer lists it".to_owned()),
            };
            let state = listed.state();
            let upstream = name.to_owned();
            ReviewedTool { upstream, tool, state, definition: listed.listed, changes, judged }
        });
        Ok(UpstreamReview { server, tools: tools.collect() })
    }

    fn judge(
        &self,
        config: &Config,
        upstream: &Upstream,
        definition: &ToolDefinition,
    ) -> Result<(UpstreamDocument, Candidate), String> {
        let document =
            tool_document(upstream, &config.workspace, definition).map_err(|error| error.to_string())?;
        let text = document.to_text();
        let mut file = check(text.as_bytes(), Format::Json);
        let checked = file.tools.pop().ok_or("its definition cannot be read")?;
        let candidate = self.publisher().assess(&checked).map_err(explain)?;
        let level = candidate.tool.inherent_level();
        let most = upstream.max_risk as usize;
        if RiskLevel::ALL.iter().position(|known| *known == level).is_some_and(|level| level > most) {
            return Err(format!(
                "its risk is {}, and `max_risk` of this server is {:?}",
                level.name(),
                upstream.max_risk
            ));
        }
        if let Some(taken) = self.loaded().tools.iter().find(|tool| tool.name == document.name)
            && taken.file() != Some(document_file(config, upstream, &document).as_path())
        {
            return Err(format!("the name `{}` is taken; give it an `alias`", document.name));
        }
        Ok((document, candidate))
    }

    /// Publishes a reviewed tool: writes its document into the tools directory and records the approval. Returns the file.
    pub fn approve_upstream_tool(
        &self,
        tool: &ReviewedTool,
        accepted: &[String],
        by: &str,
    ) -> Result<PathBuf, String> {
        let config = self.config();
        let upstream = configured(&config, &tool.upstream)?;
        let (document, candidate) = tool.judged.as_ref().map_err(Clone::clone)?;
        let definition = tool.definition.as_ref().ok_or("the server no longer lists it")?;
        let mut candidate = candidate.clone();
        candidate.accepted = accepted.to_vec();
        if let Some(refusal) = candidate.refusal() {
            return Err(refusal);
        }
        let file = document_file(&config, upstream, document);
        let text = document.to_text();
        let directory = file.parent().ok_or("the tools directory has no path")?;
        std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        write_atomic_no_follow(&file, text.as_bytes())
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let pin = Pin::of(definition);
        let entry = json!({
            "kind": "upstream.approved",
            "upstream": tool.upstream,
            "tool": { "name": document.name, "digest": candidate.tool.digest(), "pin": pin.as_str() },
            "accepted": accepted,
            "by": by,
        });
        let note = || self.note(&entry).map_err(|error| error.to_string());
        self.publisher().publish_reviewed(&candidate, SystemTime::now(), &note)?;
        self.decide(tool, |listed| {
            listed.approved = Some(definition.clone());
            listed.name = Some(document.name.clone());
            listed.rejected = None;
        })?;
        Ok(file)
    }

    /// Unpublishes a tool of a server and keeps this definition of it from being offered again.
    pub fn reject_upstream_tool(&self, tool: &ReviewedTool, by: &str) -> Result<(), String> {
        let pin = tool.definition.as_ref().map(|definition| Pin::of(definition).as_str().to_owned());
        let entry = json!({
            "kind": "upstream.rejected", "upstream": tool.upstream, "tool": tool.tool, "pin": pin, "by": by,
        });
        self.note(&entry).map_err(|error| error.to_string())?;
        if let Ok((document, candidate)) = &tool.judged {
            let id = candidate.tool.spec().id.as_str();
            self.publisher().unpublish(id, &document.name, SystemTime::now())?;
        }
        self.decide(tool, |listed| {
            listed.approved = None;
            listed.rejected.clone_from(&pin);
        })
    }

    /// Unpublishes all tools of a server and forgets its reviews.
    pub fn remove_upstream_tools(&self, name: &str, by: &str) -> Result<(), String> {
        self.note(&json!({ "kind": "upstream.removed", "upstream": name, "by": by }))
            .map_err(|error| error.to_string())?;
        for tool in self.loaded().tools.iter() {
            let Ok(candidate) = &tool.candidate else { continue };
            let spec = candidate.tool.spec();
            let is_of_server = matches!(&spec.body, Body::Handler(Handler::Mcp(mcp)) if mcp.upstream == name);
            if is_of_server {
                self.publisher().unpublish(spec.id.as_str(), &spec.name, SystemTime::now())?;
            }
        }
        UpstreamListing::default().write(&self.config().state, name).map_err(|error| unreadable(name, &error))
    }

    fn decide(
        &self,
        tool: &ReviewedTool,
        change: impl FnOnce(&mut super::ListedUpstreamTool),
    ) -> Result<(), String> {
        let config = self.config();
        let name = &tool.upstream;
        let mut listing =
            UpstreamListing::read(&config.state, name).map_err(|error| unreadable(name, &error))?;
        if let Some(listed) = listing.tools.get_mut(&tool.tool) {
            change(listed);
        }
        listing.write(&config.state, name).map_err(|error| unreadable(name, &error))
    }
}

impl UpstreamDocument {
    /// The file of this document.
    pub fn to_text(&self) -> String {
        let document = Value::Object(self.document.clone());
        format!("{document:#}\n")
    }
}

fn configured<'c>(config: &'c Config, name: &str) -> Result<&'c Upstream, String> {
    let found = config.upstreams.iter().find(|upstream| upstream.name == name);
    found.ok_or_else(|| format!("no upstream server `{name}` is configured; run `toolgate upstream list`"))
}

/// In the first tools directory, below the name of the server.
fn document_file(config: &Config, upstream: &Upstream, document: &UpstreamDocument) -> PathBuf {
    let directory = config.tools.iter().find(|path| path.extension().is_none());
    let directory = directory.cloned().unwrap_or_else(|| config.workspace.join("tools"));
    directory.join("upstreams").join(&upstream.name).join(format!("{}.json", document.name))
}

fn explain(unfit: Unpublishable) -> String {
    match unfit {
        Unpublishable::Findings(findings) => findings.first().map_or_else(
            || "it has errors".to_owned(),
            |one| format!("{}: {}", one.at.as_str(), one.message),
        ),
        Unpublishable::NotOffered(why) | Unpublishable::Unreadable(why) => why,
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> String {
    format!("the stored listing of `{name}` cannot be used: {error}")
}
