//! Compiled patterns, shared by all tools with the same ones.
//!
//! Most tools have only the patterns of the baseline. Compiling them per tool used most of the memory of a large
//! workspace.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

type PatternCache<T> = Option<HashMap<Vec<String>, Weak<T>>>;

/// Compiled patterns by their source. They are dropped with the last tool that uses them.
#[derive(Debug)]
pub struct CompiledPatterns<T: ?Sized>(Mutex<PatternCache<T>>);

impl<T: ?Sized> CompiledPatterns<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub fn get(
        &self,
        patterns: &[&str],
        compile: impl FnOnce(&[&str]) -> Result<Arc<T>, regex::Error>,
    ) -> Result<Arc<T>, regex::Error> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let key: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        if let Some(compiled) = known.get(&key).and_then(Weak::upgrade) {
            return Ok(compiled);
        }
        let compiled = compile(patterns)?;
        known.retain(|_, compiled| compiled.strong_count() > 0);
        known.insert(key, Arc::downgrade(&compiled));
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use regex::RegexSet;

    use super::*;

    #[test]
    fn same_patterns_are_compiled_once_and_dropped_with_the_last_user() {
        let patterns = CompiledPatterns::<RegexSet>::new();
        let get = |wanted: &[&str]| patterns.get(wanted, |all| RegexSet::new(all).map(Arc::new)).unwrap();
        let (one, other) = (get(&["a", "b"]), get(&["a", "b"]));
        assert!(Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &get(&["b", "a"])));
        assert!(patterns.get(&["("], |all| RegexSet::new(all).map(Arc::new)).is_err());
        drop((one, other));
        drop(get(&["c"]));
        assert_eq!(patterns.0.lock().unwrap().as_ref().unwrap().len(), 1);
    }
}
