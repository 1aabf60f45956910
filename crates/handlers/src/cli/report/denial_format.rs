//! Formats denials for their audience. The journal and the tool's author see all of them. Callers never see denied
//! paths that they named themselves: only existing paths are denied, so the denial would reveal that the path exists.

use toolgate_policy::Mask;
use toolgate_secrets::{Detector, Tier};

use super::{
    audience::DenialAudience,
    denial::{Denial, Denials},
};
use crate::cli::view::hidden_paths::HiddenPaths;

/// The context for formatting denials.
#[derive(Clone, Copy)]
pub struct DenialFormatter<'t> {
    pub mask: &'t Mask,
    pub detector: &'t Detector,
    pub hidden_paths: &'t HiddenPaths,
    pub audience: &'t DenialAudience,
}

impl DenialFormatter<'_> {
    /// One line. It is redacted before it is cut, because a cut secret would not be recognised.
    pub fn line(&self, refused: &Denial) -> String {
        refused.describe_with(|name| {
            let masked = self.mask.text(name);
            cut(&self.detector.redact(&masked, Tier::Probable).text, LONGEST_NAME)
        })
    }

    /// Appends the denials of a failed command, and a remedy. `words` is the command's error output.
    pub fn add_denials(&self, mut said: String, refusals: &Denials, words: &str) -> String {
        // Programs access many paths that they do not need. Denials that the program mentions come first; those that
        // no manifest can grant are left out.
        let is_listed = |refused: &&Denial| refused.can_be_granted() && !self.is_withheld(refused);
        let mut refused: Vec<&Denial> = refusals.listed.iter().filter(is_listed).collect();
        refused.sort_by_key(|refused| !refused.is_named_in(words));
        let listed: Vec<String> =
            refused.iter().take(FIRST_REFUSED).map(|refused| self.line(refused)).collect();
        if !listed.is_empty() {
            let more = and_more(refused.len() - listed.len(), self.dropped(refusals));
            said = format!("{said}; the jail refused: {}{more}", listed.join(", "));
        }
        for refused in &refusals.listed {
            if let Denial::Bounds(what) = refused {
                said = format!("{said}; denials in a container cannot be observed: it has {what}");
            }
        }
        let (blocked, others): (Vec<&Denial>, Vec<&Denial>) = refused.into_iter().partition(
            |refused| matches!(refused, Denial::Path { path, .. } if self.hidden_paths.covers(path)),
        );
        if !blocked.is_empty() {
            said.push_str("; some of it is blocked for this tool");
        }
        if let Some(remedy) = others.into_iter().find_map(Denial::remedy) {
            said = format!("{said}; {remedy}");
        }
        said
    }

    fn is_withheld(&self, refused: &Denial) -> bool {
        match (refused, self.audience) {
            (Denial::Path { path, .. }, DenialAudience::Caller(given)) => {
                self.hidden_paths.is_not_shown(path) && given.names(path)
            }
            _ => false,
        }
    }

    /// The dropped paths are unknown, and even their number would reveal the existence of a path.
    const fn dropped(&self, refusals: &Denials) -> u64 {
        match self.audience {
            DenialAudience::Author => refusals.dropped,
            DenialAudience::Caller(_) => refusals.dropped.saturating_sub(refusals.dropped_paths),
        }
    }
}

/// The suffix of a shortened list.
pub fn and_more(listed: usize, dropped: u64) -> String {
    match dropped.saturating_add(u64::try_from(listed).unwrap_or(u64::MAX)) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

pub const FIRST_REFUSED: usize = 5;
const LONGEST_NAME: usize = 300;
