//! Protected resource metadata (RFC 9728), which names the issuers to clients.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::auth::settings::IssuerSettings;

#[derive(Clone, Debug)]
pub(crate) struct ResourceMetadata {
    issuers: Vec<String>,
    scopes: BTreeSet<String>,
}

impl ResourceMetadata {
    pub(super) fn of<'i>(issuers: impl Iterator<Item = &'i IssuerSettings>) -> Option<Self> {
        let mut metadata = Self { issuers: Vec::new(), scopes: BTreeSet::new() };
        for issuer in issuers {
            metadata.issuers.push(issuer.issuer.clone());
            metadata.scopes.extend(issuer.scopes.iter().cloned());
        }
        (!metadata.issuers.is_empty()).then_some(metadata)
    }

    /// The document for the resource `<base>/mcp`.
    pub(crate) fn document(&self, base: &str) -> Value {
        let mut document = json!({
            "resource": format!("{base}/mcp"),
            "resource_name": "Toolgate",
            "authorization_servers": self.issuers,
            "bearer_methods_supported": ["header"],
        });
        if let Some(members) = document.as_object_mut().filter(|_| !self.scopes.is_empty()) {
            members.insert("scopes_supported".into(), json!(self.scopes));
        }
        document
    }
}
