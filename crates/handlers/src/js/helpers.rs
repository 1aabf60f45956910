//! Which helper versions are offered here? A document that asks for another one is not published.

use toolgate_spec::model::ToolSpec;

/// The helpers that the document declares and this runtime lacks.
pub fn missing_helpers(spec: &ToolSpec) -> Vec<String> {
    let runtime = spec.claimed_safety.as_ref().and_then(|safety| safety.runtime.as_ref());
    let declared = runtime.map_or(&[][..], |runtime| runtime.helpers.as_slice());
    declared.iter().filter(|helper| !is_offered(helper)).cloned().collect()
}

/// `namespace/v1` and `bundle/v1#group`.
fn is_offered(helper: &str) -> bool {
    let (name, group) = helper.split_once('#').map_or((helper, None), |(name, group)| (name, Some(group)));
    match (name, group) {
        ("tool-safety-helpers/v1", None) => true,
        (
            "safety.fs/v1" | "safety.parser/v1" | "safety.http/v1" | "safety.crypto/v1"
            | "safety.encoding/v1",
            None,
        ) => true,
        ("tool-safety-helpers/v1", Some(group)) => GROUPS.contains(&group),
        _ => false,
    }
}

const GROUPS: &[&str] = &["console", "crypto", "encoding", "fetch", "fs", "http", "parser", "text", "url"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_not_ours_are_not_offered() {
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
