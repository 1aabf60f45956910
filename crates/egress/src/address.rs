//! Table of special-purpose address ranges that are not part of the public internet, one row per range.
//!
//! Sources: the IANA special-purpose address registries for IPv4 and IPv6, and the documents named in each row.

use std::{
    iter,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Returns the special-purpose range that contains this address, or `None` for a public address.
pub fn special_range(address: IpAddr) -> Option<&'static SpecialRange> {
    match unwrapped(address) {
        IpAddr::V4(v4) => {
            let bits = u32::from(v4);
            V4_ROWS.iter().find(|row| row.holds(u128::from(bits), u32::BITS))
        }
        IpAddr::V6(v6) => {
            let bits = u128::from(v6);
            let row = V6_ROWS.iter().find(|row| row.holds(bits, u128::BITS));
            row.or_else(|| (!GLOBAL_UNICAST.holds(bits, u128::BITS)).then_some(&NOT_ASSIGNED))
        }
    }
}

/// Returns the address that packets really go to. The kernel treats the unspecified address as loopback.
pub fn reached_address(address: IpAddr) -> IpAddr {
    match unwrapped(address) {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other => other,
    }
}

/// The kernel sends to an IPv4-mapped address as IPv4. A NAT64 gateway replaces its well-known prefix by the embedded
/// IPv4 address.
fn unwrapped(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if NAT64.holds(u128::from(v6), u128::BITS) => IpAddr::V4(last_four(v6)),
        canonical => canonical,
    }
}

/// Returns every address that a packet for this one may reach: the address itself and each IPv4 address embedded in it.
/// The kernel treats an unspecified address as loopback.
pub fn reached_forms(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let wrapped = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => Some(wrapped_v4(v6).map(IpAddr::V4)),
    };
    iter::once(address).chain(wrapped.into_iter().flatten()).map(reached_address)
}

/// Whether this address is a cloud metadata endpoint, which hands out credentials. Also looks into embedded IPv4
/// addresses.
pub fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_metadata_v4(v4),
        IpAddr::V6(v6) => METADATA_V6.contains(&v6) || wrapped_v4(v6).any(is_metadata_v4),
    }
}

fn is_metadata_v4(v4: Ipv4Addr) -> bool {
    // All of 169.254/16: clouds keep adding endpoints there (.169.254, .170.2, .170.23, .42.42), and no other service
    // uses it.
    v4.is_link_local() || METADATA_V4.contains(&v4)
}

/// Returns every IPv4 address that a tunnel or translator could extract from this IPv6 address.
fn wrapped_v4(v6: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    let segments = v6.segments();
    let pair = |high: usize, low: usize| {
        let high = segments.get(high).copied().unwrap_or_default();
        let low = segments.get(low).copied().unwrap_or_default();
        Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
    };
    let [.., a, b, c, d] = v6.octets();
    let [_, _, _, _, _, _, high, middle, _, low, lowest, ..] = v6.octets();
    let is_teredo = segments.first() == Some(&0x2001) && segments.get(1) == Some(&0);
    let is_six_to_four = segments.first() == Some(&0x2002);
    let is_local_nat64 = v6.segments().starts_with(&[0x64, 0xff9b, 1]);
    let is_last = segments.starts_with(&[0, 0, 0, 0, 0]) // mapped, compatible, and the old translated form
        || segments.starts_with(&[0, 0, 0, 0, 0xffff, 0])
        || segments.starts_with(&[0x64, 0xff9b]);
    [
        is_last.then_some(Ipv4Addr::new(a, b, c, d)),
        is_six_to_four.then(|| pair(1, 2)),
        is_teredo.then_some(Ipv4Addr::new(!a, !b, !c, !d)),
        // RFC 6052 leaves out the ninth octet of a 48-bit prefix.
        is_local_nat64.then_some(Ipv4Addr::new(high, middle, low, lowest)),
    ]
    .into_iter()
    .flatten()
}

fn last_four(v6: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = v6.octets();
    Ipv4Addr::new(a, b, c, d)
}

/// A range outside the public internet.
#[derive(Debug, Eq, PartialEq)]
pub struct SpecialRange {
    network: u128,
    prefix: u32,
    pub name: &'static str,
    pub source: &'static str,
}

impl SpecialRange {
    const fn holds(&self, bits: u128, width: u32) -> bool {
        // A prefix of 0 would shift by the whole width; the table has none.
        let shift = width - self.prefix;
        bits >> shift == self.network >> shift
    }
}

const fn v4(network: [u8; 4], prefix: u32, name: &'static str, source: &'static str) -> SpecialRange {
    SpecialRange { network: u32::from_be_bytes(network) as u128, prefix, name, source }
}

const fn v6(network: [u16; 4], prefix: u32, name: &'static str, source: &'static str) -> SpecialRange {
    let [a, b, c, d] = network;
    SpecialRange { network: Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_bits(), prefix, name, source }
}

static V4_ROWS: [SpecialRange; 19] = [
    v4([0, 0, 0, 0], 8, "this network", "RFC 791"),
    v4([10, 0, 0, 0], 8, "private use", "RFC 1918"),
    v4([100, 64, 0, 0], 10, "carrier-grade NAT", "RFC 6598"),
    v4([127, 0, 0, 0], 8, "loopback", "RFC 1122"),
    v4([169, 254, 0, 0], 16, "link local", "RFC 3927"),
    v4([172, 16, 0, 0], 12, "private use", "RFC 1918"),
    v4([192, 0, 0, 0], 24, "protocol assignments", "RFC 6890"),
    v4([192, 0, 2, 0], 24, "documentation", "RFC 5737"),
    v4([192, 31, 196, 0], 24, "AS112", "RFC 7535"),
    v4([192, 52, 193, 0], 24, "automatic multicast tunnelling", "RFC 7450"),
    v4([192, 88, 99, 0], 24, "6to4 relay", "RFC 7526"),
    v4([192, 168, 0, 0], 16, "private use", "RFC 1918"),
    v4([192, 175, 48, 0], 24, "AS112", "RFC 7534"),
    v4([198, 18, 0, 0], 15, "benchmarking", "RFC 2544"),
    v4([198, 51, 100, 0], 24, "documentation", "RFC 5737"),
    v4([203, 0, 113, 0], 24, "documentation", "RFC 5737"),
    v4([224, 0, 0, 0], 4, "multicast", "RFC 5771"),
    v4([255, 255, 255, 255], 32, "broadcast", "RFC 919"),
    v4([240, 0, 0, 0], 4, "reserved", "RFC 1112"),
];

static V6_ROWS: [SpecialRange; 20] = [
    SpecialRange { network: 0, prefix: 128, name: "unspecified", source: "RFC 4291" },
    SpecialRange { network: 1, prefix: 128, name: "loopback", source: "RFC 4291" },
    SpecialRange { network: 0, prefix: 96, name: "IPv4-compatible", source: "RFC 4291" },
    SpecialRange { network: 0xffff_0000_0000_0000, prefix: 96, name: "IPv4-translated", source: "RFC 2765" },
    v6([0x64, 0xff9b, 1, 0], 48, "local NAT64", "RFC 8215"),
    v6([0x100, 0, 0, 0], 64, "discard", "RFC 6666"),
    v6([0x100, 0, 0, 1], 64, "dummy", "RFC 9780"),
    v6([0x2001, 0, 0, 0], 32, "Teredo", "RFC 4380"),
    v6([0x2001, 2, 0, 0], 48, "benchmarking", "RFC 5180"),
    v6([0x2001, 0, 0, 0], 23, "protocol assignments", "RFC 2928"),
    v6([0x2001, 0xdb8, 0, 0], 32, "documentation", "RFC 3849"),
    v6([0x2002, 0, 0, 0], 16, "6to4", "RFC 3056"),
    v6([0x2620, 0x4f, 0x8000, 0], 48, "AS112", "RFC 7534"),
    v6([0x3ffe, 0, 0, 0], 16, "6bone", "RFC 3701"),
    v6([0x3fff, 0, 0, 0], 20, "documentation", "RFC 9637"),
    v6([0x5f00, 0, 0, 0], 16, "segment routing", "RFC 9602"),
    v6([0xfc00, 0, 0, 0], 7, "unique local", "RFC 4193"),
    v6([0xfe80, 0, 0, 0], 10, "link local", "RFC 4291"),
    v6([0xfec0, 0, 0, 0], 10, "site local", "RFC 3879"),
    v6([0xff00, 0, 0, 0], 8, "multicast", "RFC 4291"),
];

static GLOBAL_UNICAST: SpecialRange = v6([0x2000, 0, 0, 0], 3, "global unicast", "RFC 4291");
static NOT_ASSIGNED: SpecialRange =
    SpecialRange { network: 0, prefix: 1, name: "not global unicast", source: "RFC 4291" };
static NAT64: SpecialRange = v6([0x64, 0xff9b, 0, 0], 96, "NAT64", "RFC 6052");

const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200), // Alibaba
    Ipv4Addr::new(168, 63, 129, 16),   // Azure; publicly routable
    Ipv4Addr::new(192, 0, 0, 192),     // Oracle
];

const METADATA_V6: [Ipv6Addr; 5] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),   // AWS
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),    // AWS, pod identity
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),    // Google
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),     // Scaleway
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe), // OpenStack
];

#[cfg(test)]
pub mod tests;
