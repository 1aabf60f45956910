//! The capability words of three layers: shipped defaults, the document, the operator. The last that speaks decides.

use std::sync::Arc;

use toolgate_spec::{HostPattern, PathPattern, model::CapabilityPatch};

use crate::{
    defaults::Defaults,
    setting::{Listing, Origin, Setting},
};

pub(super) struct Layers<'a> {
    pub defaults: &'a Defaults,
    pub tool: &'a CapabilityPatch,
    pub user: Option<&'a CapabilityPatch>,
}

impl<'a> Layers<'a> {
    pub fn setting<T>(
        &self,
        get: impl Fn(&'a CapabilityPatch) -> Option<T>,
        fallback: Setting<T>,
    ) -> Setting<T> {
        self.setting_if_stated(get).unwrap_or(fallback)
    }

    /// As `setting`, where it matters that no layer says anything.
    pub fn setting_if_stated<T>(&self, get: impl Fn(&'a CapabilityPatch) -> Option<T>) -> Option<Setting<T>> {
        self.stated(&get)
            .or_else(|| Some(Setting::new(get(&self.defaults.patch)?, self.defaults.origin.clone())))
    }

    pub fn flag(&self, get: fn(&CapabilityPatch) -> Option<bool>, fallback: Setting<bool>) -> Setting<bool> {
        self.setting(get, fallback)
    }

    /// What the document or the operator says, not the shipped defaults.
    pub fn stated<T>(&self, get: impl Fn(&'a CapabilityPatch) -> Option<T>) -> Option<Setting<T>> {
        self.user
            .and_then(&get)
            .map(|value| Setting::new(value, Origin::User))
            .or_else(|| get(self.tool).map(|value| Setting::new(value, Origin::Tool)))
    }

    /// An explicit list takes the place of the inherited one.
    pub fn replaced<T: Item>(
        &self,
        inherited: &Listing<T>,
        get: impl Fn(&'a CapabilityPatch) -> Option<&'a Vec<T::Written>>,
    ) -> Listing<T> {
        match self.stated(get) {
            Some(list) => Listing::of(list.value.iter().filter_map(T::read), list.origin),
            None => inherited.clone(),
        }
    }

    /// A list of prohibitions only grows: nobody takes out what a layer below put in.
    pub fn extended<T: Item>(
        &self,
        inherited: &Listing<T>,
        get: impl Fn(&'a CapabilityPatch) -> Option<&'a Vec<T::Written>>,
    ) -> Listing<T> {
        let of_tool = get(self.tool).into_iter().flatten().filter_map(T::read);
        let of_user = self.user.and_then(&get).into_iter().flatten().filter_map(T::read);
        inherited.joined(of_tool, &Origin::Tool).joined(of_user, &Origin::User)
    }
}

/// How an entry is written in a document, and how it is kept.
pub(super) trait Item: Clone + PartialEq + Sized {
    type Written: 'static;

    /// `None` for what is not well-formed. Only a document's model can hold such a thing, and `network` refuses it.
    fn read(written: &Self::Written) -> Option<Self>;
}

impl Item for Arc<str> {
    type Written = String;

    fn read(written: &String) -> Option<Self> {
        Some(Self::from(written.as_str()))
    }
}

impl Item for u16 {
    type Written = Self;

    fn read(written: &Self) -> Option<Self> {
        Some(*written)
    }
}

impl Item for PathPattern {
    type Written = Self;

    fn read(written: &Self) -> Option<Self> {
        Some(written.clone())
    }
}

impl Item for HostPattern {
    type Written = String;

    fn read(written: &String) -> Option<Self> {
        Self::parse(written).ok()
    }
}
