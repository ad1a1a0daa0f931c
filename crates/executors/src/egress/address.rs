//! Which addresses belong to the public internet, after IANA's special-purpose registries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that a tool must not reach, with what they are.
const SPECIAL_V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private network"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "carrier-grade NAT"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    // The address at which Azure serves machines their own agent; it stands in a public block.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a cloud's metadata service"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private network"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved for protocols"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a 6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private network"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// IPv6 blocks inside 2000::/3 that a tool must not reach. Everything outside 2000::/3 is refused anyway.
const SPECIAL_V6: &[(Ipv6Addr, u32, &str)] = &[
    // Teredo, ORCHID and benchmarking stand in here: a Teredo address leads to a machine behind somebody's NAT.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved for protocols"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    // Wraps an IPv4 address, which would need a check of its own; nothing public is left there.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "6to4"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
];

/// `None` for an address of the public internet, else what the address is for.
pub fn special_purpose(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    SPECIAL_V4
        .iter()
        .find(|(block, bits, _)| (u32::from(address) ^ u32::from(*block)) >> (32 - bits) == 0)
        .map(|(_, _, purpose)| *purpose)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(inner) = embedded_v4(address) {
        return special_v4(inner);
    }
    if address.segments()[0] >> 13 != 1 {
        return Some(match address {
            Ipv6Addr::LOCALHOST => "loopback",
            Ipv6Addr::UNSPECIFIED => "unspecified",
            _ if address.is_multicast() => "multicast",
            _ if address.is_unique_local() => "a private network",
            _ if address.is_unicast_link_local() => "link-local",
            _ => "reserved",
        });
    }
    SPECIAL_V6
        .iter()
        .find(|(block, bits, _)| (u128::from(address) ^ u128::from(*block)) >> (128 - bits) == 0)
        .map(|(_, _, purpose)| *purpose)
}

/// The IPv4 address that a dial of this one would reach: mapped (`::ffff:a.b.c.d`) or by NAT64 (`64:ff9b::a.b.c.d`,
/// what DNS64 answers in networks that have no IPv4).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        _ => None,
    }
}
