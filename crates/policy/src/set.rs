//! The set of baseline, profiles and capability defaults, validated and ready to resolve tools.

use std::{collections::BTreeMap, fmt, sync::Arc};

use toolgate_spec::model::CapabilityPatch;

use crate::{
    base_policy::BasePolicy,
    defaults::{self, Defaults},
    effective::ClassPolicy,
    profile::{self, BaselineFile, ProfileFile},
};

/// Everything that tools are resolved against. A set is valid as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySet {
    baseline: Arc<BasePolicy>,
    profiles: BTreeMap<Arc<str>, Arc<BasePolicy>>,
    defaults: Vec<Arc<Defaults>>,
    builtin: Arc<Defaults>,
    /// The shipped classes. Risk is rated against them, so a permissive baseline shows up.
    shipped_classes: ClassPolicy,
}

/// An error in a policy file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PolicyError {
    /// The file: `baseline`, `profile:NAME`, `defaults:NAME` or `overrides`.
    pub source: String,
    pub message: String,
}

impl PolicyError {
    pub(crate) fn new(source: impl Into<String>, message: impl Into<String>) -> Self {
        Self { source: source.into(), message: message.into() }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.message)
    }
}

impl std::error::Error for PolicyError {}

impl PolicySet {
    /// The shipped policy, without files of the operator.
    pub fn shipped() -> Result<Self, Vec<PolicyError>> {
        Self::new(Self::SHIPPED_BASELINE, Self::SHIPPED_PROFILES)
    }

    /// The operator's baseline and profiles. Returns all errors.
    pub fn new<N: AsRef<str>, T: AsRef<str>>(
        baseline: &str,
        profiles: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Self, Vec<PolicyError>> {
        let mut errors = Vec::new();
        let ground = read_baseline(baseline, &mut errors);
        let files = read_profiles(profiles, &mut errors);
        let defaults = defaults::shipped(&mut errors);
        let shipped = read_baseline(Self::SHIPPED_BASELINE, &mut errors);
        let chains = chains(&files, &mut errors);
        let (Some(ground), Some(shipped), true) = (ground, shipped, errors.is_empty()) else {
            return Err(errors);
        };
        let ground = Arc::new(ground);
        let profiles = chains
            .into_iter()
            .map(|(name, chain)| {
                let resolved = chain
                    .iter()
                    .rev()
                    .fold(ground.as_ref().clone(), |below, (name, file)| below.under(name, file));
                (name, Arc::new(resolved))
            })
            .collect();
        let shipped_classes = shipped.classes;
        Ok(Self {
            baseline: ground,
            profiles,
            defaults,
            builtin: Arc::new(Defaults::builtin()),
            shipped_classes,
        })
    }

    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(AsRef::as_ref)
    }

    /// The valid names for `capability.extends`, without the one kept for older documents.
    pub fn defaults_names(&self) -> impl Iterator<Item = &str> {
        let names = self.defaults.iter().filter_map(|defaults| defaults.name());
        names.filter(|name| *name != CapabilityPatch::POLICY_APPROVAL)
    }

    pub const SHIPPED_BASELINE: &str = include_str!("../../../profiles/baseline.yaml");

    /// Name and text. The name is that of the file.
    pub const SHIPPED_PROFILES: [(&str, &str); 5] = [
        ("careful", include_str!("../../../profiles/named/careful.yaml")),
        ("files-editor", include_str!("../../../profiles/named/files-editor.yaml")),
        ("offline", include_str!("../../../profiles/named/offline.yaml")),
        ("read-only-files", include_str!("../../../profiles/named/read-only-files.yaml")),
        ("web-reader", include_str!("../../../profiles/named/web-reader.yaml")),
    ];

    pub(crate) fn baseline(&self) -> &BasePolicy {
        &self.baseline
    }

    pub(crate) fn profile(&self, name: &str) -> Option<(&Arc<str>, &BasePolicy)> {
        self.profiles.get_key_value(name).map(|(name, ground)| (name, ground.as_ref()))
    }

    pub(crate) fn defaults(&self, name: &str) -> Option<&Defaults> {
        self.defaults.iter().find(|defaults| defaults.name() == Some(name)).map(AsRef::as_ref)
    }

    pub(crate) fn builtin(&self) -> &Defaults {
        &self.builtin
    }

    pub(crate) fn shipped_classes(&self) -> &ClassPolicy {
        &self.shipped_classes
    }
}

type Profiles = BTreeMap<Arc<str>, ProfileFile>;
/// From the leaf to the root.
type ProfileChain<'f> = Vec<(&'f Arc<str>, &'f ProfileFile)>;

fn read_baseline(text: &str, errors: &mut Vec<PolicyError>) -> Option<BasePolicy> {
    let file: BaselineFile = match profile::read(text) {
        Ok(file) => file,
        Err(message) => {
            errors.push(PolicyError::new("baseline", message));
            return None;
        }
    };
    let ground = BasePolicy::baseline(&file);
    if !ground.overlap.is_empty() {
        let both = ground.overlap.join("`, `");
        errors.push(PolicyError::new("baseline", format!("`{both}` is both allowed and denied")));
        return None;
    }
    Some(ground)
}

fn read_profiles<N: AsRef<str>, T: AsRef<str>>(
    profiles: impl IntoIterator<Item = (N, T)>,
    errors: &mut Vec<PolicyError>,
) -> Profiles {
    let mut files = Profiles::new();
    for (name, text) in profiles {
        let (name, text) = (name.as_ref(), text.as_ref());
        let source = format!("profile:{name}");
        if name.trim().is_empty() || name.trim() != name {
            errors.push(PolicyError::new(
                source,
                "a profile name must not be empty or have surrounding spaces",
            ));
            continue;
        }
        match profile::read(text) {
            Ok(file) => {
                if files.insert(Arc::from(name), file).is_some() {
                    errors.push(PolicyError::new(source, "duplicate profile name"));
                }
            }
            Err(message) => errors.push(PolicyError::new(source, message)),
        }
    }
    files
}

fn chains<'f>(files: &'f Profiles, errors: &mut Vec<PolicyError>) -> Vec<(Arc<str>, ProfileChain<'f>)> {
    let mut chains = Vec::new();
    for name in files.keys() {
        match chain(files, name) {
            Ok(chain) => chains.push((Arc::clone(name), chain)),
            Err(message) => errors.push(PolicyError::new(format!("profile:{name}"), message)),
        }
    }
    chains
}

fn chain<'f>(files: &'f Profiles, leaf: &str) -> Result<ProfileChain<'f>, String> {
    let mut chain: ProfileChain<'f> = Vec::new();
    let mut next = Some(leaf);
    while let Some(name) = next {
        let Some((name, file)) = files.get_key_value(name) else {
            return Err(format!("extends `{name}`, which does not exist"));
        };
        if chain.iter().any(|(earlier, _)| *earlier == name) {
            return Err(format!("extends itself through `{name}`"));
        }
        if chain.len() == MAX_DEPTH {
            return Err(format!("extends more than {MAX_DEPTH} profiles deep"));
        }
        chain.push((name, file));
        next = file.extends.as_deref();
    }
    Ok(chain)
}

/// The maximum length of a chain, including the leaf.
const MAX_DEPTH: usize = 8;

#[cfg(test)]
mod tests;
