//! Rejects bundles whose tools share an id.

use std::collections::HashMap;

use crate::{Code, FileCheck, Finding};

pub(crate) fn bundle(file: &mut FileCheck) {
    let mut seen: HashMap<String, String> = HashMap::new();
    for tool in &mut file.tools {
        let Some(spec) = &tool.spec else { continue };
        if let Some(earlier) = seen.insert(spec.id.as_str().to_owned(), tool.name.clone()) {
            tool.findings.push(Finding::new(
                Code::SpecInvariant,
                tool.at.clone(),
                format!("`{}` has the same tool id as `{earlier}` in this bundle", tool.name),
                "give each tool its own id, or rename one of them",
            ));
            tool.spec = None;
        }
    }
}
