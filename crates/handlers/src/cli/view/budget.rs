//! Bounds a search by a number of entries and by a stop flag.

use toolgate_gate::StopFlag;

/// The remaining entries of one search.
#[derive(Debug)]
pub struct EntryBudget<'s> {
    left: usize,
    stop: &'s StopFlag,
}

impl<'s> EntryBudget<'s> {
    pub const fn new(most: usize, stop: &'s StopFlag) -> Self {
        Self { left: most, stop }
    }

    /// Consumes one entry, if any is left and the search is not stopped.
    pub fn spend_one(&mut self) -> bool {
        let fewer = self.left.checked_sub(1).filter(|_| !self.is_stopped());
        self.left = fewer.unwrap_or(self.left);
        fewer.is_some()
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_waiter_stops_the_search() {
        let stop = StopFlag::default();
        let waiting = stop.stop_on_drop();
        let mut budget = EntryBudget::new(9, &stop);
        assert!(budget.spend_one() && !budget.is_stopped());
        drop(waiting);
        assert!(!budget.spend_one() && budget.is_stopped());
        assert!(!StopFlag::default().is_set());
    }

    #[test]
    fn budget_is_consumed_completely() {
        let stop = StopFlag::default();
        let mut budget = EntryBudget::new(2, &stop);
        assert_eq!([(); 4].map(|()| budget.spend_one()), [true, true, false, false]);
        assert!(!budget.is_stopped());
    }
}
