//! The decrypted secrets, and who may have each of them.

use std::{collections::BTreeMap, fmt};

use toolgate_policy::SecretConsumer;
use zeroize::Zeroizing;

/// All secrets of one file. Values are zeroed when this is dropped.
#[derive(Clone, Default, Eq, PartialEq)]
pub(crate) struct VaultContent {
    /// Counts the writes.
    pub generation: u64,
    pub entries: BTreeMap<String, SecretEntry>,
}

#[derive(Clone, Eq, PartialEq)]
pub(crate) struct SecretEntry {
    pub value: Zeroizing<String>,
    pub scope: SecretScope,
    pub set_ms: i64,
}

/// The consumers that may have a secret. Empty: every tool and upstream server that names it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SecretScope {
    pub tools: Vec<String>,
    pub upstreams: Vec<String>,
}

impl SecretScope {
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.upstreams.is_empty()
    }

    pub fn allows(&self, consumer: SecretConsumer<'_>) -> bool {
        self.is_empty()
            || match consumer {
                SecretConsumer::Tool(name) => self.tools.iter().any(|tool| tool == name),
                SecretConsumer::Upstream(name) => self.upstreams.iter().any(|upstream| upstream == name),
            }
    }
}

impl fmt::Debug for VaultContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultContent").field("secrets", &self.entries.len()).finish_non_exhaustive()
    }
}
