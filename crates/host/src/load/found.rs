//! The tools of a workspace in listing order. Copies share their data, so a reload costs as much as it changes.

use std::sync::Arc;

use imbl::{OrdMap, ordmap::DiffItem};
use toolgate_gate::ListPosition;

use super::LoadedTool;

/// The tools that were found, in order: shipped tools in preset order, then tools of files, then tools of the program.
#[derive(Clone, Debug, Default)]
pub struct FoundTools(OrdMap<ListPosition, SharedTool>);

/// Equality compares pointers.
#[derive(Clone, Debug)]
struct SharedTool(Arc<LoadedTool>);

impl PartialEq for SharedTool {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl FoundTools {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates in listing order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<LoadedTool>> {
        self.0.values().map(|tool| &tool.0)
    }

    pub(crate) fn with_positions(&self) -> impl Iterator<Item = (&ListPosition, &Arc<LoadedTool>)> {
        self.0.iter().map(|(position, tool)| (position, &tool.0))
    }

    pub(crate) fn at(&self, position: &ListPosition) -> Option<&Arc<LoadedTool>> {
        self.0.get(position).map(|tool| &tool.0)
    }

    pub(crate) fn insert(&mut self, position: ListPosition, tool: Arc<LoadedTool>) {
        self.0.insert(position, SharedTool(tool));
    }

    pub(super) fn remove(&mut self, position: &ListPosition) -> Option<Arc<LoadedTool>> {
        self.0.remove(position).map(|tool| tool.0)
    }

    /// The old and the new tool at each position where they differ. Shared parts are not visited.
    pub(super) fn changes<'a, 'b>(
        &'a self,
        now: &'b Self,
    ) -> impl Iterator<Item = (Option<&'a LoadedTool>, Option<&'b LoadedTool>)> {
        self.0.diff(&now.0).map(|change| match change {
            DiffItem::Add(_, new) => (None, Some(new.0.as_ref())),
            DiffItem::Update { old: (_, old), new: (_, new) } => (Some(old.0.as_ref()), Some(new.0.as_ref())),
            DiffItem::Remove(_, old) => (Some(old.0.as_ref()), None),
        })
    }
}

impl<'t> IntoIterator for &'t FoundTools {
    type Item = &'t Arc<LoadedTool>;
    type IntoIter = Box<dyn Iterator<Item = Self::Item> + 't>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}
