//! `toolSafety`: the record of a resolved policy. Toolgate writes it; records of others are only compared.

use super::NetworkMode;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ToolSafety {
    pub version: Option<String>,
    pub runtime: Option<SafetyRuntime>,
    pub category: Option<SafetyCategory>,
    pub capabilities: Option<SafetyCapabilities>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SafetyRuntime {
    pub id: Option<String>,
    pub min_version: Option<String>,
    pub ecma_version: Option<String>,
    pub java_interop: Option<bool>,
    pub helpers: Vec<String>,
    pub console: Option<bool>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SafetyCategory {
    pub source: Option<String>,
    pub id: Option<String>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SafetyCapabilities {
    pub network_mode: Option<NetworkMode>,
    pub network_hosts: Vec<String>,
    pub file_read: Option<bool>,
    pub file_write: Option<bool>,
    pub destructive: Option<bool>,
}
