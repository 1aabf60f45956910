//! RFC 6901 pointers into a document, built only for findings.

use std::fmt;

/// A JSON pointer such as `/params/0/testValue`; empty for the whole document.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Pointer(String);

impl Pointer {
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Wraps text that is already a pointer, such as `/params/0` in our own code.
    pub fn new(pointer: impl Into<String>) -> Self {
        Self(pointer.into())
    }

    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut pointer = self.0.clone();
        pointer.push('/');
        for character in key.chars() {
            match character {
                '~' => pointer.push_str("~0"),
                '/' => pointer.push_str("~1"),
                other => pointer.push(other),
            }
        }
        Self(pointer)
    }

    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}/{index}", self.0))
    }

    /// This pointer relative to an outer document, for a tool inside a bundle.
    #[must_use]
    pub fn within(&self, outer: &Self) -> Self {
        Self(format!("{}{}", outer.0, self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The reference tokens, unescaped.
    pub fn tokens(&self) -> Vec<String> {
        self.0.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "(document)" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::Pointer;

    #[test]
    fn escapes_follow_rfc_6901() {
        let pointer = Pointer::root().key("a/b").key("m~n").index(3);
        assert_eq!(pointer.as_str(), "/a~1b/m~0n/3");
        assert_eq!(pointer.tokens(), ["a/b", "m~n", "3"]);
        assert_eq!(
            Pointer::new("/params/0").within(&Pointer::new("/toolSpecs/7")).as_str(),
            "/toolSpecs/7/params/0"
        );
    }
}
