//! The helper versions that this runtime offers. A document that declares another one is not published.

use toolgate_spec::model::ToolSpec;

/// The declared helpers that this runtime lacks.
pub fn missing_helpers(spec: &ToolSpec) -> Vec<String> {
    let runtime = spec.claimed_safety.as_ref().and_then(|safety| safety.runtime.as_ref());
    let declared = runtime.map_or(&[][..], |runtime| runtime.helpers.as_slice());
    declared.iter().filter(|helper| !is_offered(helper)).cloned().collect()
}

/// `namespace/v1` and `bundle/v1#group`.
fn is_offered(helper: &str) -> bool {
    let (name, group) = helper.split_once('#').map_or((helper, None), |(name, group)| (name, Some(group)));
    match (name, group) {
        (name, None) => NAMES.contains(&name),
        ("tool-safety-helpers/v1", Some(group)) => GROUPS.contains(&group),
        _ => false,
    }
}

const NAMES: &[&str] = &[
    "safety.crypto/v1",
    "safety.encoding/v1",
    "safety.fs/v1",
    "safety.http/v1",
    "safety.parser/v1",
    "tool-safety-helpers/v1",
];

const GROUPS: &[&str] = &["console", "crypto", "encoding", "fetch", "fs", "http", "parser", "text", "url"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_are_not_offered() {
        for offered in ["safety.fs/v1", "tool-safety-helpers/v1#crypto", "safety.parser/v1"] {
            assert!(is_offered(offered), "{offered}");
        }
        for other in
            ["safety.fs/v2", "tool-safety-helpers/v1#gpu", "tool-safety-helpers/v2#crypto", "safety.fs", ""]
        {
            assert!(!is_offered(other), "{other}");
        }
    }
}
