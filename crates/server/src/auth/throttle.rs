//! How often may an address be wrong? Failed attempts are counted in windows; the table is bounded.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};

use crate::auth::settings::ThrottleSettings;

pub(crate) struct Throttle {
    settings: ThrottleSettings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: HashMap<IpAddr, Window>,
    /// Digests of tokens that were good lately. On one machine all clients share an address: one with an old token must
    /// not lock the others out.
    good: VecDeque<[u8; 32]>,
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

    /// How long this address must wait before this token is looked at; `None`: not at all.
    pub(crate) fn wait(&self, peer: IpAddr, token: &str, now: SystemTime) -> Option<Duration> {
        let state = self.lock();
        let window = state.failures.get(&counted_as(peer))?;
        let left = self.left(*window, now)?;
        let is_over = window.count >= self.settings.failures;
        (is_over && !state.good.contains(&fingerprint(token))).then_some(left)
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

    pub(crate) fn succeeded(&self, token: &str) {
        let mut state = self.lock();
        let print = fingerprint(token);
        if !state.good.contains(&print) {
            if state.good.len() >= REMEMBERED_TOKENS {
                state.good.pop_front();
            }
            state.good.push_back(print);
        }
    }

    /// Windows that are over go first; if there are none, the address with the fewest failures does.
    fn make_room(&self, failures: &mut HashMap<IpAddr, Window>, now: SystemTime) {
        failures.retain(|_, window| self.left(*window, now).is_some());
        if failures.len() >= self.settings.addresses {
            let mildest = failures.iter().min_by_key(|(_, window)| window.count).map(|(peer, _)| *peer);
            mildest.map(|peer| failures.remove(&peer));
        }
    }

    /// What is left of a window; a clock that went back ends it.
    fn left(&self, window: Window, now: SystemTime) -> Option<Duration> {
        let passed = now.duration_since(window.since).ok()?;
        self.settings.window.checked_sub(passed).filter(|left| !left.is_zero())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A household or a server has a whole /64 of IPv6 addresses to try from.
fn counted_as(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

fn fingerprint(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

const REMEMBERED_TOKENS: usize = 256;

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
    fn an_address_that_guesses_waits_out_its_window() {
        let (throttle, now) = (Throttle::new(SETTINGS), SystemTime::UNIX_EPOCH);
        fail(&throttle, "192.0.2.1", 2, now);
        assert_eq!(throttle.wait(address("192.0.2.1"), "x", now), None);
        fail(&throttle, "192.0.2.1", 1, now);
        let later = now + Duration::from_secs(20);
        assert_eq!(throttle.wait(address("192.0.2.1"), "x", later), Some(Duration::from_secs(40)));
        assert_eq!(throttle.wait(address("192.0.2.2"), "x", later), None);
        assert_eq!(throttle.wait(address("192.0.2.1"), "x", now + Duration::from_mins(1)), None);
    }

    #[test]
    fn one_ipv6_network_counts_as_one_address_and_a_mapped_one_as_ipv4() {
        let (throttle, now) = (Throttle::new(SETTINGS), SystemTime::UNIX_EPOCH);
        for peer in ["2001:db8::1", "2001:db8::2", "2001:db8::ffff:3"] {
            fail(&throttle, peer, 1, now);
        }
        assert!(throttle.wait(address("2001:db8::9"), "x", now).is_some());
        assert!(throttle.wait(address("2001:db8:0:1::9"), "x", now).is_none());
        fail(&throttle, "::ffff:192.0.2.1", 3, now);
        assert!(throttle.wait(address("192.0.2.1"), "x", now).is_some());
        assert!(throttle.wait(address("192.0.2.2"), "x", now).is_none());
    }

    /// Somebody with a stale token on this machine must not shut everybody else out.
    #[test]
    fn a_token_that_was_good_lately_is_still_looked_at() {
        let (throttle, now) = (Throttle::new(SETTINGS), SystemTime::UNIX_EPOCH);
        throttle.succeeded("tg_good");
        fail(&throttle, "127.0.0.1", 3, now);
        assert_eq!(throttle.wait(address("127.0.0.1"), "tg_good", now), None);
        assert!(throttle.wait(address("127.0.0.1"), "tg_guess", now).is_some());
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
        assert!(throttle.wait(address("192.0.2.1"), "x", now).is_some());
    }

    #[test]
    fn the_memory_of_good_tokens_is_bounded() {
        let throttle = Throttle::new(SETTINGS);
        for token in 0..1000 {
            throttle.succeeded(&token.to_string());
        }
        assert_eq!(throttle.lock().good.len(), REMEMBERED_TOKENS);
    }
}
