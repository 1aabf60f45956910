//! Checks tools of an upstream MCP server. The operator's configuration says where the server is and what it may do.

use super::report::ManifestReport;
use crate::{Pointer, model::McpHandler};

pub(super) fn check(mcp: &McpHandler, at: &Pointer, report: &mut ManifestReport<'_>) {
    for (key, name, remedy) in [
        ("upstream", &mcp.upstream, "write the name that `toolgate upstream list` shows"),
        ("tool", &mcp.tool, "write the name as the server lists it"),
    ] {
        if !name.is_empty() && (name.trim() != name || name.chars().any(char::is_control)) {
            report.add(&at.key(key), format!("`{}` is not a name", name.escape_debug()), remedy);
        }
    }
}
