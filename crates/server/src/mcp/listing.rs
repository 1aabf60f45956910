//! Pages of `tools/list` with the tools visible to a caller. Translates each tool once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rmcp::model::Tool;
use tokio::sync::watch;
use toolgate_gate::{Gate, LiveTool};
use toolgate_policy::Caller;

/// Cache of tools in the SDK's form.
#[derive(Debug)]
pub struct Listings {
    changes: watch::Receiver<u64>,
    known: Mutex<TranslatedTools>,
}

/// Keyed by address. Each entry keeps its tool alive, so an address is not reused.
#[derive(Debug, Default)]
struct TranslatedTools {
    version: u64,
    by_address: HashMap<usize, (Arc<LiveTool>, Tool)>,
}

/// The cursor is unknown, or not visible to this caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadCursor;

impl Listings {
    pub fn new(gate: &Gate) -> Self {
        Self { changes: gate.changes(), known: Mutex::default() }
    }

    pub fn page(
        &self,
        gate: &Gate,
        caller: &Caller,
        cursor: Option<&str>,
        size: usize,
    ) -> Result<(Vec<Tool>, Option<String>), BadCursor> {
        let after = cursor.map(|cursor| place(cursor).ok_or(BadCursor)).transpose()?;
        // A valid cursor at a hidden tool would reveal that the tool exists.
        if after.as_deref().is_some_and(|name| gate.find(caller, name).is_none()) {
            return Err(BadCursor);
        }
        let (tools, next) = gate.page(caller, after.as_deref(), size.max(1)).ok_or(BadCursor)?;
        Ok((self.translated(&tools), next.map(|name| URL_SAFE_NO_PAD.encode(name))))
    }

    fn translated(&self, tools: &[Arc<LiveTool>]) -> Vec<Tool> {
        let version = *self.changes.borrow();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.version != version {
            *known = TranslatedTools { version, by_address: HashMap::new() };
        }
        tools.iter().filter_map(|tool| known.translated(tool)).collect()
    }
}

impl TranslatedTools {
    /// Returns `None` if the SDK cannot represent the tool. The tool can still be called by name.
    fn translated(&mut self, tool: &Arc<LiveTool>) -> Option<Tool> {
        let address = Arc::as_ptr(tool).addr();
        if let Some((_, translated)) = self.by_address.get(&address) {
            return Some(translated.clone());
        }
        let translated: Tool = serde_json::from_value(tool.listing().clone()).ok()?;
        self.by_address.insert(address, (Arc::clone(tool), translated.clone()));
        Some(translated)
    }
}

fn place(cursor: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}
