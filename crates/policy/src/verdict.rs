//! The decision about a call: ordered by strictness; without any decision source it is no.

#[must_use]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Verdict {
    Permit,
    /// A person decides.
    Ask,
    Forbid,
}

impl Verdict {
    /// The strictest of all verdicts; `Forbid` if there are none.
    pub fn strictest(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::Forbid)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Ask => "ask",
            Self::Forbid => "forbid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{self, Ask, Forbid, Permit};

    #[track_caller]
    fn check(opinions: &[Verdict], expect: Verdict) {
        assert_eq!(Verdict::strictest(opinions.iter().copied()), expect);
    }

    #[test]
    fn strictest_verdict_wins_and_none_forbids() {
        check(&[Permit, Ask, Permit], Ask);
        check(&[Ask, Forbid, Permit], Forbid);
        check(&[Permit], Permit);
        check(&[], Forbid);
    }
}
