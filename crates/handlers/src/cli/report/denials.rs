//! What is said of what was refused? To the journal and to a tool's author all of it; to a caller nothing of a path outside that
//! the caller named: only what is there is refused, so that every failing command would tell which files there are.

use toolgate_policy::Mask;
use toolgate_secrets::{Detector, Tier};

use super::audience::Hearer;
use crate::cli::{
    run::launch::{Refusals, Refused},
    view::hidden_paths::Unseen,
};

/// What has to be known to say it.
#[derive(Clone, Copy)]
pub struct Teller<'t> {
    pub mask: &'t Mask,
    pub detector: &'t Detector,
    pub unseen: &'t Unseen,
    pub hearer: &'t Hearer,
}

impl Teller<'_> {
    /// In one line. It is cut when its secrets are out of it: half of one would not be found.
    pub fn line(&self, refused: &Refused) -> String {
        refused.describe_with(|name| {
            let masked = self.mask.text(name);
            cut(&self.detector.redact(&masked, Tier::Probable).text, LONGEST_NAME)
        })
    }

    /// What the jail kept from a command that failed, and what helps. `words` are those of the command.
    pub fn add_refused(&self, mut said: String, refusals: &Refusals, words: &str) -> String {
        // A program looks at much that it does not need; what it complains of comes first, and what nobody could grant not at all.
        let is_told = |refused: &&Refused| refused.can_be_granted() && !self.is_kept_quiet(refused);
        let mut refused: Vec<&Refused> = refusals.told.iter().filter(is_told).collect();
        refused.sort_by_key(|refused| !refused.is_named_in(words));
        let told: Vec<String> =
            refused.iter().take(FIRST_REFUSED).map(|refused| self.line(refused)).collect();
        if !told.is_empty() {
            let more = and_more(refused.len() - told.len(), self.dropped(refusals));
            said = format!("{said}; the jail refused: {}{more}", told.join(", "));
        }
        for refused in &refusals.told {
            if let Refused::Lack(what) = refused {
                said = format!("{said}; what a container refuses is not seen: it has {what}");
            }
        }
        let (blocked, others): (Vec<&Refused>, Vec<&Refused>) = refused
            .into_iter()
            .partition(|refused| matches!(refused, Refused::Path { path, .. } if self.unseen.covers(path)));
        if !blocked.is_empty() {
            said.push_str("; some of it is blocked for this tool");
        }
        if let Some(remedy) = others.into_iter().find_map(Refused::remedy) {
            said = format!("{said}; {remedy}");
        }
        said
    }

    fn is_kept_quiet(&self, refused: &Refused) -> bool {
        match (refused, self.hearer) {
            (Refused::Path { path, .. }, Hearer::Caller(given)) => {
                self.unseen.is_not_shown(path) && given.names(path)
            }
            _ => false,
        }
    }

    /// Nobody knows which paths these were, and even their number would tell of one more.
    const fn dropped(&self, refusals: &Refusals) -> u64 {
        match self.hearer {
            Hearer::Author => refusals.dropped,
            Hearer::Caller(_) => refusals.dropped.saturating_sub(refusals.dropped_paths),
        }
    }
}

/// Behind a list of the first.
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
