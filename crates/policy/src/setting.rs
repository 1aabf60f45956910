//! Settings and list entries with the layer that set them.

use std::{fmt, sync::Arc};

/// One value and the layer that decided it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: SettingOrigin,
}

impl<T> Setting<T> {
    pub const fn new(value: T, origin: SettingOrigin) -> Self {
        Self { value, origin }
    }
}

/// A list whose entries may come from several layers. Shared; copied only if a layer changes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SettingList<T> {
    pub entries: Arc<[Setting<T>]>,
    /// The last layer that set the list, even if it left it empty.
    pub origin: SettingOrigin,
}

impl<T> SettingList<T> {
    pub fn empty(origin: SettingOrigin) -> Self {
        Self { entries: Arc::from([]), origin }
    }

    pub fn of(values: impl IntoIterator<Item = T>, origin: SettingOrigin) -> Self {
        let entries = values.into_iter().map(|value| Setting::new(value, origin.clone())).collect();
        Self { entries, origin }
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.value)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<T: Clone + PartialEq> SettingList<T> {
    /// This list plus the missing entries of `more`.
    #[must_use]
    pub fn joined(&self, more: impl IntoIterator<Item = T>, origin: &SettingOrigin) -> Self {
        let mut added: Vec<Setting<T>> = Vec::new();
        for value in more {
            if !self.values().chain(added.iter().map(|entry| &entry.value)).any(|known| *known == value) {
                added.push(Setting::new(value, origin.clone()));
            }
        }
        if added.is_empty() {
            return self.clone();
        }
        Self { entries: self.entries.iter().cloned().chain(added).collect(), origin: origin.clone() }
    }
}

/// A policy layer, from lowest to highest.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SettingOrigin {
    /// The built-in default, documented in `docs/settings.md`.
    Builtin,
    Baseline,
    Profile(Arc<str>),
    /// The shipped capability that the document extends.
    Defaults(Arc<str>),
    /// The document itself.
    Tool,
    /// The operator's overrides for this tool.
    User,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("built-in"),
            Self::Baseline => f.write_str("baseline"),
            Self::Profile(name) => write!(f, "profile:{name}"),
            Self::Defaults(name) => write!(f, "defaults:{name}"),
            Self::Tool => f.write_str("tool"),
            Self::User => f.write_str("user"),
        }
    }
}
