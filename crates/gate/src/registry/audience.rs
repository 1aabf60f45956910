//! Which tools may a caller know of? The operator's policies are asked once about each, as long as the set is in force. A
//! policy in code is asked every time, elsewhere.
//!
//! INVARIANT: whether a tool is shown depends on the tool, the policies and the whole `Caller`, and on nothing else: no
//! clock, no approval, no arguments. So what is remembered is looked up by the whole caller, and dropped with the set.

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use toolgate_policy::Caller;

/// The callers who listed last, the latest at the end.
#[derive(Debug, Default)]
pub(super) struct Audience(Mutex<Vec<Member>>);

#[derive(Debug)]
struct Member {
    caller: Caller,
    /// With a lock of its own: a caller about whom much is asked keeps no other one waiting.
    shown: Arc<Mutex<Shown>>,
}

impl Audience {
    pub fn shown_to(&self, caller: &Caller) -> Arc<Mutex<Shown>> {
        let mut members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let member = match members.iter().position(|member| member.caller == *caller) {
            Some(at) => members.remove(at),
            None => Member { caller: caller.clone(), shown: Arc::default() },
        };
        let shown = Arc::clone(&member.shown);
        if members.len() >= MOST_CALLERS {
            members.remove(0);
        }
        members.push(member);
        shown
    }
}

/// What one caller is shown of a stretch of the set. Only what a page needs is looked at, so that a caller who is new or
/// was forgotten costs no more than without a memory.
#[derive(Debug, Default)]
pub(super) struct Shown {
    looked_at: Range<usize>,
    /// In order, and all of them within the stretch.
    places: Vec<usize>,
}

impl Shown {
    /// At most `limit` places from `start` on, and whether there are more. `judge` tells of a place whether its tool is
    /// shown; `None`: the set ends before it.
    pub fn page(
        &mut self,
        start: usize,
        limit: usize,
        judge: impl Fn(usize) -> Option<bool>,
    ) -> (Vec<usize>, bool) {
        if !(self.looked_at.start..=self.looked_at.end).contains(&start) {
            *self = Self { looked_at: start..start, places: Vec::new() };
        }
        let first = self.places.partition_point(|place| *place < start);
        let end = first.saturating_add(limit);
        // One more than the page holds: whether there is one says whether this page is the last.
        while self.places.len() <= end
            && let Some(is_shown) = judge(self.looked_at.end)
        {
            if is_shown {
                self.places.push(self.looked_at.end);
            }
            self.looked_at.end += 1;
        }
        let page = self.places.iter().skip(first).take(limit).copied().collect();
        (page, self.places.len() > end)
    }
}

const MOST_CALLERS: usize = 64;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn is_same(audience: &Audience, caller: &Caller, known: &Arc<Mutex<Shown>>) -> bool {
        Arc::ptr_eq(&audience.shown_to(caller), known)
    }

    /// A set of `size` tools of which every `nth` is shown, and how often anybody asked.
    fn asked(
        shown: &mut Shown,
        (start, limit): (usize, usize),
        size: usize,
        nth: usize,
    ) -> (Vec<usize>, bool, usize) {
        let asked = Cell::new(0);
        let (places, has_more) = shown.page(start, limit, |place| {
            (place < size).then(|| {
                asked.set(asked.get() + 1);
                place.is_multiple_of(nth)
            })
        });
        (places, has_more, asked.get())
    }

    #[test]
    fn callers_who_differ_in_anything_share_nothing() {
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
    fn who_listed_longest_ago_is_forgotten_first() {
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
    fn every_tool_is_asked_about_once() {
        let mut shown = Shown::default();
        let all = vec![0, 2_000, 4_000, 6_000, 8_000];
        assert_eq!(asked(&mut shown, (0, 10), 10_000, 2_000), (all.clone(), false, 10_000));
        assert_eq!(asked(&mut shown, (0, 10), 10_000, 2_000), (all.clone(), false, 0));
        assert_eq!(asked(&mut shown, (0, usize::MAX), 10_000, 2_000), (all, false, 0));
        assert_eq!(asked(&mut shown, (2_001, 2), 10_000, 2_000), (vec![4_000, 6_000], true, 0));
        assert_eq!(asked(&mut shown, (10_000, 2), 10_000, 2_000), (vec![], false, 0));
    }

    #[test]
    fn no_more_is_looked_at_than_a_page_needs() {
        let mut shown = Shown::default();
        assert_eq!(asked(&mut shown, (0, 2), 10, 1), (vec![0, 1], true, 3));
        assert_eq!(asked(&mut shown, (2, 2), 10, 1), (vec![2, 3], true, 2));
        assert_eq!(asked(&mut shown, (1, 2), 10, 1), (vec![1, 2], true, 0));
        assert_eq!(asked(&mut shown, (0, 0), 10, 1), (vec![], true, 0));
        // In the middle of what nobody looked at, and back again.
        assert_eq!(asked(&mut shown, (7, 2), 10, 1), (vec![7, 8], true, 3));
        assert_eq!(asked(&mut shown, (0, 2), 10, 1), (vec![0, 1], true, 3));
    }
}
