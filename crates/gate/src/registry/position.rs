//! The order of tools in lists.

use std::{cmp::Ordering, path::Path, sync::Arc};

use crate::live::LiveTool;

/// The position of a tool in lists: by section, then by file, then by the order in the file.
///
/// It does not depend on other tools, so adding or removing a tool does not move the others.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ListPosition {
    pub section: usize,
    pub file: Arc<Path>,
    pub index: usize,
}

impl ListPosition {
    /// For tools that are not from a file.
    pub fn nth(index: usize) -> Self {
        Self { section: 0, file: Arc::from(Path::new("")), index }
    }
}

/// A tool at its position. Two are equal if their positions are.
#[derive(Clone, Debug)]
pub(super) struct ListedTool {
    pub position: ListPosition,
    pub tool: Arc<LiveTool>,
}

impl Ord for ListedTool {
    fn cmp(&self, other: &Self) -> Ordering {
        self.position.cmp(&other.position)
    }
}

impl PartialOrd for ListedTool {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ListedTool {
    fn eq(&self, other: &Self) -> bool {
        self.position == other.position
    }
}

impl Eq for ListedTool {}
