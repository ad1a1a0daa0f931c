//! Which addresses belong to the public internet, by IANA's special-purpose registries for IPv4 and
//! IPv6, multicast, and the metadata addresses of clouds. Every check of an address uses this
//! table.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address does not belong to the public internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    Loopback,
    PrivateNetwork,
    CarrierNat,
    LinkLocal,
    /// A cloud's services for its own machines, including credentials.
    Metadata,
    ThisNetwork,
    Protocol,
    Documentation,
    Benchmarking,
    /// Leads to an IPv4 address, or to a machine behind a NAT, which a check of the outer address
    /// cannot see.
    Tunnel,
    /// The nearest machine responds.
    Anycast,
    Multicast,
    Reserved,
}

impl Purpose {
    /// Whether an operator's own machines can have such an address. A name must not resolve to
    /// other special addresses, even if the operator allowed the name.
    pub fn is_private_use(self) -> bool {
        matches!(self, Self::Loopback | Self::PrivateNetwork | Self::CarrierNat)
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::PrivateNetwork => "a private network",
            Self::CarrierNat => "carrier-grade NAT",
            Self::LinkLocal => "link-local",
            Self::Metadata => "a cloud's metadata service",
            Self::ThisNetwork => "this network",
            Self::Protocol => "reserved for protocols",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Tunnel => "a tunnel",
            Self::Anycast => "a network's anycast service",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
        })
    }
}

/// The first block that contains an address decides its purpose, so narrow blocks precede wide
/// ones.
const V4: &[(Ipv4Addr, u32, Purpose)] = &[
    // Amazon, Azure, Google, Oracle, DigitalOcean, Hetzner and others; Amazon's containers;
    // Tencent; Scaleway.
    (Ipv4Addr::new(169, 254, 169, 254), 32, Purpose::Metadata),
    (Ipv4Addr::new(169, 254, 170, 0), 24, Purpose::Metadata),
    (Ipv4Addr::new(169, 254, 0, 23), 32, Purpose::Metadata),
    (Ipv4Addr::new(169, 254, 42, 42), 32, Purpose::Metadata),
    // Alibaba; Oracle's first generation.
    (Ipv4Addr::new(100, 100, 100, 200), 32, Purpose::Metadata),
    (Ipv4Addr::new(192, 0, 0, 192), 32, Purpose::Metadata),
    // In public blocks, but reachable only from a machine of that cloud: Azure, and IBM's service
    // endpoints.
    (Ipv4Addr::new(168, 63, 129, 16), 32, Purpose::Metadata),
    (Ipv4Addr::new(161, 26, 0, 0), 16, Purpose::Metadata),
    (Ipv4Addr::new(166, 8, 0, 0), 14, Purpose::Metadata),
    // IANA's registry.
    (Ipv4Addr::UNSPECIFIED, 8, Purpose::ThisNetwork),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Purpose::PrivateNetwork),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Purpose::CarrierNat),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Purpose::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Purpose::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Purpose::PrivateNetwork),
    // Includes DS-Lite, the dummy address, the anycast addresses of PCP and TURN, and NAT64
    // discovery.
    (Ipv4Addr::new(192, 0, 0, 0), 24, Purpose::Protocol),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Purpose::Documentation),
    (Ipv4Addr::new(192, 31, 196, 0), 24, Purpose::Anycast),
    (Ipv4Addr::new(192, 52, 193, 0), 24, Purpose::Anycast),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Purpose::Tunnel),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Purpose::PrivateNetwork),
    (Ipv4Addr::new(192, 175, 48, 0), 24, Purpose::Anycast),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Purpose::Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Purpose::Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Purpose::Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Purpose::Multicast),
    // Includes the limited broadcast address.
    (Ipv4Addr::new(240, 0, 0, 0), 4, Purpose::Reserved),
];

/// Like the table above. An address that is in no row and not in 2000::/3 is reserved.
const V6: &[(Ipv6Addr, u32, Purpose)] = &[
    // Amazon, Google, Oracle, Scaleway, Akamai, and the IPv4 address in hexadecimal as several
    // write it.
    (v6(0xfd00, 0xec2, 0), 32, Purpose::Metadata),
    (v6(0xfd20, 0xce, 0), 32, Purpose::Metadata),
    (v6(0xfd00, 0xc1, 0), 32, Purpose::Metadata),
    (v6(0xfd00, 0x42, 0), 32, Purpose::Metadata),
    (v6(0xfd00, 0xa9fe, 0), 32, Purpose::Metadata),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128, Purpose::Metadata),
    // IANA's registry. IPv4-mapped addresses and 64:ff9b::/96 are judged by the IPv4 address
    // inside.
    (Ipv6Addr::LOCALHOST, 128, Purpose::Loopback),
    (Ipv6Addr::UNSPECIFIED, 128, Purpose::ThisNetwork),
    // NAT64 with a network's own rules. Only that network knows where the IPv4 address is in it.
    (v6(0x64, 0xff9b, 1), 48, Purpose::Tunnel),
    // Two blocks: discard-only, and the dummy prefix.
    (v6(0x100, 0, 0), 48, Purpose::Reserved),
    (v6(0x2001, 0, 0), 32, Purpose::Tunnel),
    (v6(0x2001, 2, 0), 48, Purpose::Benchmarking),
    (v6(0x2001, 3, 0), 32, Purpose::Anycast),
    (v6(0x2001, 4, 0x112), 48, Purpose::Anycast),
    // The rest of the block for protocols: anycast of PCP, TURN and DNS-SD, ORCHID, drones, and
    // unassigned addresses.
    (v6(0x2001, 0, 0), 23, Purpose::Protocol),
    (v6(0x2001, 0xdb8, 0), 32, Purpose::Documentation),
    (v6(0x2002, 0, 0), 16, Purpose::Tunnel),
    (v6(0x2620, 0x4f, 0x8000), 48, Purpose::Anycast),
    (v6(0x3fff, 0, 0), 20, Purpose::Documentation),
    (v6(0x5f00, 0, 0), 16, Purpose::Protocol),
    (v6(0xfc00, 0, 0), 7, Purpose::PrivateNetwork),
    (v6(0xfe80, 0, 0), 10, Purpose::LinkLocal),
    // Site-local: deprecated, but still used in private networks.
    (v6(0xfec0, 0, 0), 10, Purpose::PrivateNetwork),
    (v6(0xff00, 0, 0), 8, Purpose::Multicast),
];

const fn v6(a: u16, b: u16, c: u16) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)
}

/// Returns `None` for an address of the public internet, else its purpose.
pub fn special_purpose(address: IpAddr) -> Option<Purpose> {
    match reached_address(address) {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

/// The address that a connection to this one reaches: the IPv4 address for a mapped one
/// (`::ffff:a.b.c.d`) and for NAT64 (`64:ff9b::a.b.c.d`, which DNS64 returns in networks without
/// IPv4), else the same.
pub fn reached_address(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => match six.segments() {
            [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).into()
            }
            _ => address,
        },
        IpAddr::V4(_) => address,
    }
}

fn special_v4(address: Ipv4Addr) -> Option<Purpose> {
    V4.iter()
        .find(|(block, bits, _)| (u32::from(address) ^ u32::from(*block)) >> (32 - bits) == 0)
        .map(|(_, _, purpose)| *purpose)
}

fn special_v6(address: Ipv6Addr) -> Option<Purpose> {
    let listed = V6
        .iter()
        .find(|(block, bits, _)| (u128::from(address) ^ u128::from(*block)) >> (128 - bits) == 0)
        .map(|(_, _, purpose)| *purpose);
    // ISATAP: in any network, a host part that wraps an IPv4 address.
    let isatap = matches!(address.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, _, _]).then_some(Purpose::Tunnel);
    let outside = (address.segments()[0] >> 13 != 1).then_some(Purpose::Reserved);
    listed.or(isatap).or(outside)
}
