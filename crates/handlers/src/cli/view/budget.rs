//! How far is a tree looked at? No further than so many entries, and no longer than somebody waits for the answer.

pub use toolgate_gate::StopFlag as Stop;

/// What one look may still cost.
#[derive(Debug)]
pub struct Budget<'s> {
    left: usize,
    stop: &'s Stop,
}

impl<'s> Budget<'s> {
    pub const fn new(most: usize, stop: &'s Stop) -> Self {
        Self { left: most, stop }
    }

    /// Takes one entry off, if it may be looked at.
    pub fn spend_one(&mut self) -> bool {
        let fewer = self.left.checked_sub(1).filter(|_| !self.is_stopped());
        self.left = fewer.unwrap_or(self.left);
        fewer.is_some()
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_asked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lets_go_ends_the_look_and_nobody_else_does() {
        let stop = Stop::default();
        let waiting = stop.waiting();
        let mut budget = Budget::new(9, &stop);
        assert!(budget.spend_one() && !budget.is_stopped());
        drop(waiting);
        assert!(!budget.spend_one() && budget.is_stopped());
        assert!(!Stop::default().is_asked());
    }

    #[test]
    fn a_budget_is_spent_to_the_last() {
        let stop = Stop::default();
        let mut budget = Budget::new(2, &stop);
        assert_eq!([(); 4].map(|()| budget.spend_one()), [true, true, false, false]);
        assert!(!budget.is_stopped());
    }
}
