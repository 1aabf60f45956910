//! Who calls? The answer that everything behind the door works with.

use std::{fmt, time::SystemTime};

use toolgate_policy::Caller;

/// A caller whose proof was verified. Only this crate's doors make one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    pub caller: Caller,
    pub role: Role,
    pub how: How,
    /// When the proof stops being one; streams that outlive it should end.
    pub expires: Option<SystemTime>,
}

/// What a caller may do at the door. Permissions for tools are another matter.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Role {
    /// May list and call tools.
    Caller,
    /// May also use the admin API.
    Admin,
}

/// How the caller proved who they are.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum How {
    /// A token of our own, by its public id.
    Token { id: String },
    /// A signed token of somebody else, by the name that the configuration gives them.
    Jwt { issuer: String },
    /// Not at all; the configuration allows it in so many words.
    Anonymous,
    /// By having started this process: stdio, and runs without a client.
    Local,
}

impl Identity {
    /// The caller of a process that its user started: no token, for there is no door.
    pub fn local(name: &str, permissions: impl IntoIterator<Item = String>, role: Role) -> Self {
        let caller = Caller::new(subject(Namespace::Local, name), permissions);
        Self { caller, role, how: How::Local, expires: None }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token { id } => write!(f, "token {id}"),
            Self::Jwt { issuer } => write!(f, "jwt {issuer}"),
            Self::Anonymous => f.write_str("anonymous"),
            Self::Local => f.write_str("local"),
        }
    }
}

/// Where a subject comes from. Names from different places never meet, for each has its own prefix, and an issuer's
/// name holds no colon.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Namespace<'n> {
    Token,
    Jwt { issuer: &'n str },
    Anonymous,
    Local,
}

pub(crate) fn subject(namespace: Namespace<'_>, name: &str) -> String {
    match namespace {
        Namespace::Token => format!("token:{name}"),
        Namespace::Jwt { issuer } => format!("jwt:{issuer}:{name}"),
        Namespace::Anonymous => format!("anonymous:{name}"),
        Namespace::Local => format!("local:{name}"),
    }
}

/// A subject is shown to people who decide by it, so it must look like what it is.
pub(crate) fn is_sound_subject(name: &str) -> bool {
    let is_bounded = !name.is_empty() && name.len() <= MAX_SUBJECT_BYTES;
    is_bounded && name.trim() == name && !name.chars().any(toolgate_spec::is_deceptive)
}

const MAX_SUBJECT_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// A `sub` that spells another namespace stays inside its own.
    #[test]
    fn no_name_leaves_its_namespace() {
        let names = ["local:me", "token:ci", "me", "jwt:other:me"];
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            for namespace in [
                Namespace::Token,
                Namespace::Jwt { issuer: "one" },
                Namespace::Jwt { issuer: "other" },
                Namespace::Anonymous,
                Namespace::Local,
            ] {
                assert!(seen.insert(subject(namespace, name)), "{namespace:?} {name}");
            }
        }
    }

    #[test]
    fn a_subject_that_hides_something_is_unsound() {
        for name in ["", " ", "me ", "\u{a0}me", "me\n", "m\u{202e}e", "me\u{200b}", "m\0e", &"x".repeat(257)]
        {
            assert!(!is_sound_subject(name), "{name:?}");
        }
        for name in ["me", "me@example.com", "auth0|12 34", "Jürgen", &"x".repeat(256)] {
            assert!(is_sound_subject(name), "{name:?}");
        }
    }
}
