//! Limits failed authentication per address and time window, in a bounded table.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use crate::auth::settings::ThrottleSettings;

pub(crate) struct Throttle {
    settings: ThrottleSettings,
    state: Mutex<FailureTable>,
}

#[derive(Default)]
struct FailureTable {
    failures: HashMap<IpAddr, Window>,
}

#[derive(Clone, Copy)]
struct Window {
    since: SystemTime,
    count: u32,
}

impl Throttle {
    pub(crate) fn new(settings: ThrottleSettings) -> Self {
        Self { settings, state: Mutex::default() }
    }

    /// How long this address has to wait. `None` if it is below the limit.
    pub(crate) fn wait(&self, peer: IpAddr, now: SystemTime) -> Option<Duration> {
        let state = self.lock();
        let window = state.failures.get(&counted_as(peer))?;
        let left = self.left(*window, now)?;
        (window.count >= self.settings.failures).then_some(left)
    }

    pub(crate) fn failed(&self, peer: IpAddr, now: SystemTime) {
        let mut state = self.lock();
        let peer = counted_as(peer);
        if !state.failures.contains_key(&peer) && state.failures.len() >= self.settings.addresses {
            self.make_room(&mut state.failures, now);
        }
        let window = state.failures.entry(peer).or_insert(Window { since: now, count: 0 });
        if self.left(*window, now).is_none() {
            *window = Window { since: now, count: 0 };
        }
        window.count = window.count.saturating_add(1);
    }

    /// Removes expired windows, or else the address with the fewest failures.
    fn make_room(&self, failures: &mut HashMap<IpAddr, Window>, now: SystemTime) {
        failures.retain(|_, window| self.left(*window, now).is_some());
        if failures.len() >= self.settings.addresses {
            let mildest = failures.iter().min_by_key(|(_, window)| window.count).map(|(peer, _)| *peer);
            mildest.map(|peer| failures.remove(&peer));
        }
    }

    /// The remaining time of a window. A clock that was set back ends it.
    fn left(&self, window: Window, now: SystemTime) -> Option<Duration> {
        let passed = now.duration_since(window.since).ok()?;
        self.settings.window.checked_sub(passed).filter(|left| !left.is_zero())
    }

    fn lock(&self) -> MutexGuard<'_, FailureTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Groups IPv6 addresses by /64, because one client can use a whole /64.
pub(crate) fn counted_as(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: ThrottleSettings =
        ThrottleSettings { failures: 3, window: Duration::from_mins(1), addresses: 4 };

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn fail(throttle: &Throttle, peer: &str, times: u32, now: SystemTime) {
        for _ in 0..times {
            throttle.failed(address(peer), now);
        }
    }

    #[test]
    fn address_over_the_limit_waits_for_its_window() {
        let (throttle, now) = (Throttle::new(SETTINGS), SystemTime::UNIX_EPOCH);
        fail(&throttle, "192.0.2.1", 2, now);
        assert_eq!(throttle.wait(address("192.0.2.1"), now), None);
        fail(&throttle, "192.0.2.1", 1, now);
        let later = now + Duration::from_secs(20);
        assert_eq!(throttle.wait(address("192.0.2.1"), later), Some(Duration::from_secs(40)));
        assert_eq!(throttle.wait(address("192.0.2.2"), later), None);
        assert_eq!(throttle.wait(address("192.0.2.1"), now + Duration::from_mins(1)), None);
    }

    #[test]
    fn one_ipv6_network_counts_as_one_address_and_a_mapped_one_as_ipv4() {
        let (throttle, now) = (Throttle::new(SETTINGS), SystemTime::UNIX_EPOCH);
        for peer in ["2001:db8::1", "2001:db8::2", "2001:db8::ffff:3"] {
            fail(&throttle, peer, 1, now);
        }
        assert!(throttle.wait(address("2001:db8::9"), now).is_some());
        assert!(throttle.wait(address("2001:db8:0:1::9"), now).is_none());
        fail(&throttle, "::ffff:192.0.2.1", 3, now);
        assert!(throttle.wait(address("192.0.2.1"), now).is_some());
        assert!(throttle.wait(address("192.0.2.2"), now).is_none());
    }

    /// Addresses are cheap: many of them fill the table, but do not push out the one that guesses most.
    #[test]
    fn the_table_is_bounded_and_forgets_the_mildest_first() {
        let (throttle, now) = (Throttle::new(SETTINGS), SystemTime::UNIX_EPOCH);
        fail(&throttle, "192.0.2.1", 3, now);
        for last in 2..250 {
            fail(&throttle, &format!("192.0.2.{last}"), 1, now);
        }
        assert_eq!(throttle.lock().failures.len(), SETTINGS.addresses);
        assert!(throttle.wait(address("192.0.2.1"), now).is_some());
    }
}
