use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(address: &str, expect: Option<&str>) {
    let range = special_range(address.parse().unwrap()).map(|row| row.name);
    assert_eq!(range, expect, "{address}");
}

#[test]
fn range_boundaries_are_exact() {
    for (first, last, name) in [
        ("10.0.0.0", "10.255.255.255", "private use"),
        ("100.64.0.0", "100.127.255.255", "carrier-grade NAT"),
        ("127.0.0.0", "127.255.255.255", "loopback"),
        ("169.254.0.0", "169.254.255.255", "link local"),
        ("172.16.0.0", "172.31.255.255", "private use"),
        ("192.0.0.0", "192.0.0.255", "protocol assignments"),
        ("192.0.2.0", "192.0.2.255", "documentation"),
        ("192.31.196.0", "192.31.196.255", "AS112"),
        ("192.52.193.0", "192.52.193.255", "automatic multicast tunnelling"),
        ("192.88.99.0", "192.88.99.255", "6to4 relay"),
        ("192.168.0.0", "192.168.255.255", "private use"),
        ("192.175.48.0", "192.175.48.255", "AS112"),
        ("198.18.0.0", "198.19.255.255", "benchmarking"),
        ("198.51.100.0", "198.51.100.255", "documentation"),
        ("203.0.113.0", "203.0.113.255", "documentation"),
    ] {
        check(first, Some(name));
        check(last, Some(name));
        let before = Ipv4Addr::from(u32::from(first.parse::<Ipv4Addr>().unwrap()) - 1);
        let after = Ipv4Addr::from(u32::from(last.parse::<Ipv4Addr>().unwrap()) + 1);
        check(&before.to_string(), None);
        check(&after.to_string(), None);
    }
    check("0.0.0.0", Some("this network"));
    check("0.255.255.255", Some("this network"));
    check("1.0.0.0", None);
    check("223.255.255.255", None);
    check("224.0.0.0", Some("multicast"));
    check("240.0.0.0", Some("reserved"));
    check("255.255.255.255", Some("broadcast"));
}

#[test]
fn ipv6_is_public_only_where_it_is_global_unicast() {
    check("::", Some("unspecified"));
    check("::1", Some("loopback"));
    check("::8.8.8.8", Some("IPv4-compatible"));
    check("::ffff:0:8.8.8.8", Some("IPv4-translated"));
    check("64:ff9b:1::8.8.8.8", Some("local NAT64"));
    check("64:ff9b:2::", Some("not global unicast"));
    check("100::1", Some("discard"));
    check("1fff:ffff::", Some("not global unicast"));
    check("2000::", None);
    check("2001::1", Some("Teredo"));
    check("2001:2::1", Some("benchmarking"));
    check("2001:1ff::", Some("protocol assignments"));
    check("2001:200::", None);
    check("2001:4860:4860::8888", None);
    check("2001:db8::1", Some("documentation"));
    check("2002:808:808::1", Some("6to4"));
    check("2003::", None);
    check("2620:4f:8000::1", Some("AS112"));
    check("3ffe::1", Some("6bone"));
    check("3fff:fff::1", Some("documentation"));
    check("3fff:1000::1", None);
    check("4000::", Some("not global unicast"));
    check("5f00::1", Some("segment routing"));
    check("fc00::1", Some("unique local"));
    check("fdff::1", Some("unique local"));
    check("fe80::1", Some("link local"));
    check("fec0::1", Some("site local"));
    check("ff02::1", Some("multicast"));
}

#[test]
fn embedded_ipv4_address_is_checked_as_ipv4() {
    check("::ffff:127.0.0.1", Some("loopback"));
    check("::ffff:10.1.2.3", Some("private use"));
    check("::ffff:8.8.8.8", None);
    check("64:ff9b::10.1.2.3", Some("private use"));
    check("64:ff9b::8.8.8.8", None);
    check("64:ff9b::1:808:808", Some("not global unicast"));
}

#[test]
fn metadata_is_recognised_in_every_embedding() {
    for address in [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::a9fe:a9fe",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",
        "2002:a9fe:a9fe::1",
        "2001:0:1234::5601:5601", // Teredo inverts the bits
    ] {
        assert!(is_metadata(address.parse().unwrap()), "{address}");
    }
    for address in ["8.8.8.8", "10.0.0.1", "127.0.0.1", "2001:4860::a9fe:a9fe", "fd00:ec2::1"] {
        assert!(!is_metadata(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn no_row_is_shadowed() {
    for row in &V4_ROWS {
        let address = Ipv4Addr::from(u32::try_from(row.network).unwrap());
        assert_eq!(special_range(address.into()), Some(row));
    }
    for row in &V6_ROWS {
        // The last address: the first one of an outer range may belong to an inner range.
        let last = row.network | u128::MAX.checked_shr(row.prefix).unwrap_or(0);
        assert_eq!(special_range(Ipv6Addr::from(last).into()), Some(row), "{row:?}");
    }
}

proptest! {
    #[test]
    fn every_address_in_a_row_is_special(row in 0..V6_ROWS.len(), host: u128) {
        let row = &V6_ROWS[row];
        let mask = u128::MAX.checked_shr(row.prefix).unwrap_or(0);
        let address = Ipv6Addr::from(row.network | (host & mask));
        prop_assert!(special_range(address.into()).is_some(), "{}", address);
    }

    #[test]
    fn global_unicast_outside_the_rows_is_public(bits: u128) {
        let address = Ipv6Addr::from((bits >> 3) | (0b001 << 125));
        let is_in_a_row = V6_ROWS.iter().any(|row| row.holds(u128::from(address), u128::BITS));
        prop_assert_eq!(special_range(address.into()).is_some(), is_in_a_row);
    }

    #[test]
    fn mapped_and_plain_agree(bits: u32) {
        let v4 = Ipv4Addr::from(bits);
        let mapped = v4.to_ipv6_mapped();
        prop_assert_eq!(special_range(v4.into()), special_range(mapped.into()));
        prop_assert_eq!(is_metadata(v4.into()), is_metadata(mapped.into()));
    }
}

/// Rows for other tests: a network and its prefix length.
pub fn v4_networks() -> Vec<(Ipv4Addr, u32)> {
    V4_ROWS.iter().map(|row| (Ipv4Addr::from(u32::try_from(row.network).unwrap()), row.prefix)).collect()
}

pub fn v6_networks() -> Vec<(Ipv6Addr, u32)> {
    V6_ROWS.iter().map(|row| (Ipv6Addr::from(row.network), row.prefix)).collect()
}
