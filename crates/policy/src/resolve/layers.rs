//! The capability layers: shipped defaults, document, overrides. The last one that sets a value wins.

use std::sync::Arc;

use toolgate_spec::{HostPattern, PathPattern, model::CapabilityPatch};

use crate::{
    defaults::Defaults,
    setting::{Setting, SettingList, SettingOrigin},
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

    /// As `setting`, but `None` if no layer sets it.
    pub fn setting_if_stated<T>(&self, get: impl Fn(&'a CapabilityPatch) -> Option<T>) -> Option<Setting<T>> {
        self.stated(&get)
            .or_else(|| Some(Setting::new(get(&self.defaults.patch)?, self.defaults.origin.clone())))
    }

    pub fn flag(&self, get: fn(&CapabilityPatch) -> Option<bool>, fallback: Setting<bool>) -> Setting<bool> {
        self.setting(get, fallback)
    }

    /// The value of the document or the overrides, not of shipped defaults.
    pub fn stated<T>(&self, get: impl Fn(&'a CapabilityPatch) -> Option<T>) -> Option<Setting<T>> {
        self.user
            .and_then(&get)
            .map(|value| Setting::new(value, SettingOrigin::User))
            .or_else(|| get(self.tool).map(|value| Setting::new(value, SettingOrigin::Tool)))
    }

    /// An explicit list replaces the inherited one.
    pub fn replaced<T: ListItem>(
        &self,
        inherited: &SettingList<T>,
        get: impl Fn(&'a CapabilityPatch) -> Option<&'a Vec<T::Written>>,
    ) -> SettingList<T> {
        match self.stated(get) {
            Some(list) => SettingList::of(list.value.iter().filter_map(T::read), list.origin),
            None => inherited.clone(),
        }
    }

    /// A deny list only grows: no layer can remove entries of a lower one.
    pub fn extended<T: ListItem>(
        &self,
        inherited: &SettingList<T>,
        get: impl Fn(&'a CapabilityPatch) -> Option<&'a Vec<T::Written>>,
    ) -> SettingList<T> {
        let of_tool = get(self.tool).into_iter().flatten().filter_map(T::read);
        let of_user = self.user.and_then(&get).into_iter().flatten().filter_map(T::read);
        inherited.joined(of_tool, &SettingOrigin::Tool).joined(of_user, &SettingOrigin::User)
    }
}

/// How an entry is written in a document, and its parsed form.
pub(super) trait ListItem: Clone + PartialEq + Sized {
    type Written: 'static;

    /// `None` if malformed. Only a hand-made model can contain such an entry, and `network` rejects it.
    fn read(written: &Self::Written) -> Option<Self>;
}

impl ListItem for Arc<str> {
    type Written = String;

    fn read(written: &String) -> Option<Self> {
        Some(Self::from(written.as_str()))
    }
}

impl ListItem for u16 {
    type Written = Self;

    fn read(written: &Self) -> Option<Self> {
        Some(*written)
    }
}

impl ListItem for PathPattern {
    type Written = Self;

    fn read(written: &Self) -> Option<Self> {
        Some(written.clone())
    }
}

impl ListItem for HostPattern {
    type Written = String;

    fn read(written: &String) -> Option<Self> {
        Self::parse(written).ok()
    }
}
