//! The answer to "may this call run?": ordered, and silence is no.

#[must_use]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Verdict {
    Permit,
    /// A person decides.
    Ask,
    Forbid,
}

impl Verdict {
    /// The strictest of all opinions; where nobody has one, no.
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
    fn the_strictest_wins_and_silence_forbids() {
        check(&[Permit, Ask, Permit], Ask);
        check(&[Ask, Forbid, Permit], Forbid);
        check(&[Permit], Permit);
        check(&[], Forbid);
    }
}
