//! Limits the connections per address, so one client cannot block the others.

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
    state: Mutex<AddressTable>,
}

#[derive(Debug, Default)]
struct AddressTable {
    held: HashMap<IpAddr, usize>,
    /// When an address at its limit was last logged.
    told: HashMap<IpAddr, Instant>,
}

/// One connection of an address. Dropping it releases it.
#[derive(Debug)]
pub(super) struct Share {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

/// The address has reached its limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AddressFull {
    /// Log it.
    Tell,
    /// Do not log it: this address was logged within the last minute, or too many were.
    Told,
}

impl Addresses {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), state: Mutex::default() })
    }

    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr, now: Instant) -> Result<Share, AddressFull> {
        let address = counted_as(peer);
        let mut state = self.lock();
        let held = state.held.entry(address).or_insert(0);
        if *held >= self.most {
            return Err(state.tell(address, now));
        }
        *held += 1;
        Ok(Share { addresses: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, AddressTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AddressTable {
    /// Allows one log line per address and minute.
    fn tell(&mut self, address: IpAddr, now: Instant) -> AddressFull {
        self.told.retain(|_, told| now.saturating_duration_since(*told) < BETWEEN_LINES);
        if self.told.contains_key(&address) || self.told.len() >= MOST_TOLD {
            return AddressFull::Told;
        }
        self.told.insert(address, now);
        AddressFull::Tell
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
/// Addresses that are logged within a minute.
const MOST_TOLD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn address_is_limited_to_its_share() {
        let (addresses, now) = (Addresses::new(2), Instant::now());
        let held = addresses.enter(address("192.0.2.1"), now).unwrap();
        let _other = addresses.enter(address("192.0.2.1"), now).unwrap();
        assert!(addresses.enter(address("192.0.2.1"), now).is_err());
        assert!(addresses.enter(address("192.0.2.2"), now).is_ok());
        drop(held);
        assert!(addresses.enter(address("192.0.2.1"), now).is_ok());
    }

    #[test]
    fn ipv6_network_counts_as_one_address_and_mapped_ipv4_as_ipv4() {
        let (addresses, now) = (Addresses::new(1), Instant::now());
        let _held = addresses.enter(address("2001:db8::1"), now).unwrap();
        assert!(addresses.enter(address("2001:db8::ffff:2"), now).is_err());
        assert!(addresses.enter(address("2001:db8:0:1::1"), now).is_ok());
        let _mapped = addresses.enter(address("::ffff:192.0.2.1"), now).unwrap();
        assert!(addresses.enter(address("192.0.2.1"), now).is_err());
    }

    #[test]
    fn address_is_logged_once_a_minute() {
        let (addresses, now) = (Addresses::new(1), Instant::now());
        let knock = |peer: &str, now| addresses.enter(address(peer), now).unwrap_err();
        let held = addresses.enter(address("192.0.2.1"), now).unwrap();
        assert_eq!(knock("192.0.2.1", now), AddressFull::Tell);
        assert_eq!(knock("192.0.2.1", now), AddressFull::Told);
        // A new connection after a release writes no further line.
        drop(held);
        let _held = addresses.enter(address("192.0.2.1"), now).unwrap();
        assert_eq!(knock("192.0.2.1", now + Duration::from_secs(59)), AddressFull::Told);
        let _other = addresses.enter(address("192.0.2.2"), now).unwrap();
        assert_eq!(knock("192.0.2.2", now), AddressFull::Tell);
        assert_eq!(knock("192.0.2.1", now + BETWEEN_LINES), AddressFull::Tell);
    }

    #[test]
    fn released_addresses_are_removed() {
        let (addresses, now) = (Addresses::new(1), Instant::now());
        for last in 0..=u8::MAX {
            drop(addresses.enter(IpAddr::from([192, 0, 2, last]), now).unwrap());
        }
        assert!(addresses.lock().held.is_empty());
    }
}
