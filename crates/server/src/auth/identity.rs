//! The identity of an authenticated caller.

use std::{fmt, time::SystemTime};

use toolgate_policy::Caller;

/// An authenticated caller. Only this crate creates one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuthIdentity {
    pub caller: Caller,
    pub role: Role,
    pub how: How,
    /// When the token expires. Streams must end then.
    pub expires: Option<SystemTime>,
}

/// Which APIs a caller may use. Tools have their own permissions.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Role {
    /// May list and call tools.
    Caller,
    /// May also use the admin API.
    Admin,
}

/// How the caller was authenticated.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum How {
    /// A token of this gateway, by its public id.
    Token { id: String },
    /// A JWT, by the configured name of its issuer.
    Jwt { issuer: String },
    /// Not authenticated, as explicitly configured.
    Anonymous,
    /// The user who started this process (stdio, and calls from the command line).
    Local,
}

impl AuthIdentity {
    /// The user who started the process. This needs no token.
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

/// The source of a subject. Each source has its own prefix, and issuer names contain no colon, so subjects never collide.
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

/// Whether a subject can be displayed without deception. People approve calls by it.
pub(crate) fn is_sound_subject(name: &str) -> bool {
    let is_bounded = !name.is_empty() && name.len() <= MAX_SUBJECT_BYTES;
    is_bounded && name.trim() == name && !name.chars().any(toolgate_spec::is_deceptive)
}

const MAX_SUBJECT_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// A `sub` that looks like another namespace stays in its own.
    #[test]
    fn subjects_of_different_namespaces_differ() {
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
    fn deceptive_subjects_are_rejected() {
        for name in ["", " ", "me ", "\u{a0}me", "me\n", "m\u{202e}e", "me\u{200b}", "m\0e", &"x".repeat(257)]
        {
            assert!(!is_sound_subject(name), "{name:?}");
        }
        for name in ["me", "me@example.com", "auth0|12 34", "Jürgen", &"x".repeat(256)] {
            assert!(is_sound_subject(name), "{name:?}");
        }
    }
}
