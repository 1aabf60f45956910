//! What a manifest's blocks say about each other.

use crate::{Finding, model::ToolSpec};

pub(super) fn check(_spec: &ToolSpec, _findings: &mut Vec<Finding>) {}
