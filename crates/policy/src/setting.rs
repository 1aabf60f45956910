//! Who set this? Every setting, and every entry of a list, knows.

use std::{fmt, sync::Arc};

/// One value and the layer that decided it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    pub const fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

/// A list whose entries may come from several layers. Shared, and copied only where a layer changes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listing<T> {
    pub entries: Arc<[Setting<T>]>,
    /// The layer that had the last word on the list, also where it left it empty.
    pub origin: Origin,
}

impl<T> Listing<T> {
    pub fn empty(origin: Origin) -> Self {
        Self { entries: Arc::from([]), origin }
    }

    pub fn of(values: impl IntoIterator<Item = T>, origin: Origin) -> Self {
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

impl<T: Clone + PartialEq> Listing<T> {
    /// This list and what it lacks of `more`; itself where that is nothing.
    #[must_use]
    pub fn joined(&self, more: impl IntoIterator<Item = T>, origin: &Origin) -> Self {
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

/// A layer of the policy, from the ground up.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Origin {
    /// What holds where nobody says anything; in the code, and in `docs/settings.md`.
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

impl fmt::Display for Origin {
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
