//! What is allowed and yet probably not meant. Warnings only; see `Code` for what each one watches for.

use serde_json::{Map, Value};

use crate::{Finding, model::ToolSpec};

pub(crate) fn lint(_document: &Map<String, Value>, _spec: &ToolSpec, _findings: &mut Vec<Finding>) {}
