//! How many connections does one address hold? Only its share, so that nobody keeps the others out.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::auth::counted_as;

#[derive(Debug)]
pub(super) struct Addresses {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<IpAddr, usize>,
    /// When the log last heard of an address that was full.
    told: HashMap<IpAddr, Instant>,
}

/// A connection's part of its address's share, given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

/// The address holds all that it may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Full {
    /// The log is to hear of it.
    Tell,
    /// It has heard of this address within the last minute, or of too many.
    Told,
}

impl Addresses {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), state: Mutex::default() })
    }

    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr, now: Instant) -> Result<Share, Full> {
        let address = counted_as(peer);
        let mut state = self.lock();
        let held = state.held.entry(address).or_insert(0);
        if *held >= self.most {
            return Err(state.tell(address, now));
        }
        *held += 1;
        Ok(Share { addresses: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whoever hammers at the door writes one line a minute, not one for each knock.
    fn tell(&mut self, address: IpAddr, now: Instant) -> Full {
        self.told.retain(|_, told| now.saturating_duration_since(*told) < BETWEEN_LINES);
        if self.told.contains_key(&address) || self.told.len() >= MOST_TOLD {
            return Full::Told;
        }
        self.told.insert(address, now);
        Full::Tell
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.addresses.lock();
        if let Some(held) = state.held.get_mut(&self.address) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                state.held.remove(&self.address);
            }
        }
    }
}

const BETWEEN_LINES: Duration = Duration::from_mins(1);
/// Addresses of which the log hears within a minute.
const MOST_TOLD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_holds_its_share_and_no_more() {
        let (addresses, now) = (Addresses::new(2), Instant::now());
        let held = addresses.enter(address("192.0.2.1"), now).unwrap();
        let _other = addresses.enter(address("192.0.2.1"), now).unwrap();
        assert!(addresses.enter(address("192.0.2.1"), now).is_err());
        assert!(addresses.enter(address("192.0.2.2"), now).is_ok());
        drop(held);
        assert!(addresses.enter(address("192.0.2.1"), now).is_ok());
    }

    #[test]
    fn one_ipv6_network_is_one_address_and_a_mapped_one_is_ipv4() {
        let (addresses, now) = (Addresses::new(1), Instant::now());
        let _held = addresses.enter(address("2001:db8::1"), now).unwrap();
        assert!(addresses.enter(address("2001:db8::ffff:2"), now).is_err());
        assert!(addresses.enter(address("2001:db8:0:1::1"), now).is_ok());
        let _mapped = addresses.enter(address("::ffff:192.0.2.1"), now).unwrap();
        assert!(addresses.enter(address("192.0.2.1"), now).is_err());
    }

    #[test]
    fn the_log_hears_of_an_address_once_a_minute() {
        let (addresses, now) = (Addresses::new(1), Instant::now());
        let knock = |peer: &str, now| addresses.enter(address(peer), now).unwrap_err();
        let held = addresses.enter(address("192.0.2.1"), now).unwrap();
        assert_eq!(knock("192.0.2.1", now), Full::Tell);
        assert_eq!(knock("192.0.2.1", now), Full::Told);
        // To let go and come back does not write another line.
        drop(held);
        let _held = addresses.enter(address("192.0.2.1"), now).unwrap();
        assert_eq!(knock("192.0.2.1", now + Duration::from_secs(59)), Full::Told);
        let _other = addresses.enter(address("192.0.2.2"), now).unwrap();
        assert_eq!(knock("192.0.2.2", now), Full::Tell);
        assert_eq!(knock("192.0.2.1", now + BETWEEN_LINES), Full::Tell);
    }

    #[test]
    fn nothing_is_kept_of_addresses_that_have_gone() {
        let (addresses, now) = (Addresses::new(1), Instant::now());
        for last in 0..=u8::MAX {
            drop(addresses.enter(IpAddr::from([192, 0, 2, last]), now).unwrap());
        }
        assert!(addresses.lock().held.is_empty());
    }
}
