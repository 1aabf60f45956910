//! Caches which tools each caller may see. The operator's policies are evaluated once per tool and caller as long as
//! the set is live. A policy in code is called every time, elsewhere.
//!
//! INVARIANT: visibility depends on the tool, the policies and the whole `Caller`, and on nothing else: no clock, no
//! approval, no arguments. The cache is therefore keyed by the whole caller and dropped with the set.

use std::sync::{Arc, Mutex, PoisonError};

use toolgate_policy::Caller;

use super::position::ListedTool;

/// The callers that listed tools most recently, the latest at the end.
#[derive(Debug, Default)]
pub(super) struct Audience(Mutex<Vec<AudienceMember>>);

#[derive(Debug)]
struct AudienceMember {
    caller: Caller,
    /// Each caller has a lock, so a slow listing does not delay other callers.
    shown: Arc<Mutex<VisibleTools<ListedTool>>>,
}

/// A copy of a set starts with an empty cache.
impl Clone for Audience {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Audience {
    pub fn shown_to(&self, caller: &Caller) -> Arc<Mutex<VisibleTools<ListedTool>>> {
        let mut members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let member = match members.iter().position(|member| member.caller == *caller) {
            Some(at) => members.remove(at),
            None => AudienceMember { caller: caller.clone(), shown: Arc::default() },
        };
        let shown = Arc::clone(&member.shown);
        if members.len() >= MOST_CALLERS {
            members.remove(0);
        }
        members.push(member);
        shown
    }
}

/// The tools that one caller may see, among those after `after` up to `until`. Only the tools that a page needs are
/// judged, so a new or forgotten caller costs no more than without a cache.
#[derive(Debug)]
pub(super) struct VisibleTools<T> {
    /// `None`: from the first tool.
    after: Option<T>,
    /// The last tool that was judged, or `after`.
    until: Option<T>,
    /// In order.
    tools: Vec<T>,
}

impl<T> Default for VisibleTools<T> {
    fn default() -> Self {
        Self { after: None, until: None, tools: Vec::new() }
    }
}

impl<T: Clone + Ord> VisibleTools<T> {
    /// At most `limit` tools after `start`, and whether there are more. `judged_behind` returns the tools after the
    /// given one, each with its visibility.
    pub fn page<I: Iterator<Item = (T, bool)>>(
        &mut self,
        start: Option<&T>,
        limit: usize,
        judged_behind: impl Fn(Option<&T>) -> I,
    ) -> (Vec<T>, bool) {
        if !(self.after.as_ref()..=self.until.as_ref()).contains(&start) {
            *self = Self { after: start.cloned(), until: start.cloned(), tools: Vec::new() };
        }
        let first = self.tools.partition_point(|one| Some(one) <= start);
        let end = first.saturating_add(limit);
        // Judge one tool more than the page holds, to know whether this page is the last.
        if self.tools.len() <= end {
            for (tool, is_shown) in judged_behind(self.until.clone().as_ref()) {
                self.until = Some(tool.clone());
                if is_shown {
                    self.tools.push(tool);
                }
                if self.tools.len() > end {
                    break;
                }
            }
        }
        let page = self.tools.iter().skip(first).take(limit).cloned().collect();
        (page, self.tools.len() > end)
    }
}

const MOST_CALLERS: usize = 64;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn is_same(audience: &Audience, caller: &Caller, known: &Arc<Mutex<VisibleTools<ListedTool>>>) -> bool {
        Arc::ptr_eq(&audience.shown_to(caller), known)
    }

    /// Lists a set of `size` tools where every `nth` is visible, and counts how many were judged.
    fn asked(
        shown: &mut VisibleTools<usize>,
        (start, limit): (usize, usize),
        size: usize,
        nth: usize,
    ) -> (Vec<usize>, bool, usize) {
        let asked = Cell::new(0);
        let judge = |place: usize| {
            asked.set(asked.get() + 1);
            (place, place.is_multiple_of(nth))
        };
        let behind = |last: Option<&usize>| (last.map_or(0, |last| last + 1)..size).map(judge);
        let (places, has_more) = shown.page(start.checked_sub(1).as_ref(), limit, behind);
        (places, has_more, asked.get())
    }

    #[test]
    fn different_callers_have_separate_caches() {
        let audience = Audience::default();
        let ann = audience.shown_to(&Caller::new("ann", ["read", "write"]));
        assert!(is_same(&audience, &Caller::new("ann", ["write", "read"]), &ann));
        for other in [
            Caller::new("ann", ["read"]),
            Caller::new("ann", ["read", "write", "admin"]),
            Caller::new("ann", ["read,write"]),
            Caller::new::<&str>("ann", []),
            Caller::new("Ann", ["read", "write"]),
            Caller::new("bob", ["read", "write"]),
        ] {
            assert!(!is_same(&audience, &other, &ann), "{other:?}");
        }
    }

    #[test]
    fn least_recent_caller_is_forgotten_first() {
        let caller = |number: usize| Caller::new::<&str>(format!("caller {number}"), []);
        let audience = Audience::default();
        let known: Vec<_> = (0..MOST_CALLERS).map(|number| audience.shown_to(&caller(number))).collect();
        assert!(is_same(&audience, &caller(0), &known[0]));
        audience.shown_to(&caller(MOST_CALLERS));
        assert!(is_same(&audience, &caller(0), &known[0]), "just asked for");
        assert!(is_same(&audience, &caller(2), &known[2]));
        assert!(!is_same(&audience, &caller(1), &known[1]), "the oldest");
        assert_eq!(audience.0.lock().unwrap().len(), MOST_CALLERS);
    }

    #[test]
    fn every_tool_is_judged_once() {
        let mut shown = VisibleTools::default();
        let all = vec![0, 2_000, 4_000, 6_000, 8_000];
        assert_eq!(asked(&mut shown, (0, 10), 10_000, 2_000), (all.clone(), false, 10_000));
        assert_eq!(asked(&mut shown, (0, 10), 10_000, 2_000), (all.clone(), false, 0));
        assert_eq!(asked(&mut shown, (0, usize::MAX), 10_000, 2_000), (all, false, 0));
        assert_eq!(asked(&mut shown, (2_001, 2), 10_000, 2_000), (vec![4_000, 6_000], true, 0));
        assert_eq!(asked(&mut shown, (10_000, 2), 10_000, 2_000), (vec![], false, 0));
    }

    #[test]
    fn only_tools_of_the_page_are_judged() {
        let mut shown = VisibleTools::default();
        assert_eq!(asked(&mut shown, (0, 2), 10, 1), (vec![0, 1], true, 3));
        assert_eq!(asked(&mut shown, (2, 2), 10, 1), (vec![2, 3], true, 2));
        assert_eq!(asked(&mut shown, (1, 2), 10, 1), (vec![1, 2], true, 0));
        assert_eq!(asked(&mut shown, (0, 0), 10, 1), (vec![], true, 0));
        // Starts in a part that was not judged yet, then goes back.
        assert_eq!(asked(&mut shown, (7, 2), 10, 1), (vec![7, 8], true, 3));
        assert_eq!(asked(&mut shown, (0, 2), 10, 1), (vec![0, 1], true, 3));
    }
}
