use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use rcrt_breadcrumb::{Purpose, reached_address, special_purpose};

#[test]
fn every_special_block_is_refused_at_both_ends() {
    for address in [
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "168.63.129.16",
        "169.254.0.0",
        "169.254.169.254",
        "169.254.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.0",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.31.196.1",
        "192.52.193.1",
        "192.175.48.6",
        "161.26.0.10",
        "166.8.0.1",
        "166.11.255.255",
        "169.254.170.2",
        "169.254.170.23",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "100.100.100.200",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:10.1.2.3",
        "64:ff9b::127.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::8.8.8.8",
        "100::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:2::1",
        "2001:10::1",
        "2001:1::1",
        "2001:3::1",
        "2001:4:112::1",
        "2001:30::1",
        "2001:1ff:ffff::1",
        "2620:4f:8000::1",
        "100:0:0:1::1",
        "64:ff9b:1:fffe::1",
        "2600:1406::5efe:7f00:1",
        "2600:1406::200:5efe:8.8.8.8",
        "fd20:ce::254",
        "fd00:42::42",
        "fe80::a9fe:a9fe",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:808:808::1",
        "3fff::1",
        "3fff:fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "4000::1",
        "::8.8.8.8",
        "::ffff:0:8.8.8.8",
    ] {
        assert!(special_purpose(address.parse().unwrap()).is_some(), "{address} must be refused");
    }
}

#[test]
fn neighbours_of_special_blocks_are_public() {
    for address in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "203.0.114.0",
        "223.255.255.255",
        "8.8.8.8",
        "192.31.195.255",
        "192.31.197.0",
        "192.52.192.255",
        "192.52.194.0",
        "192.175.47.255",
        "192.175.49.0",
        "161.25.255.255",
        "161.27.0.0",
        "166.7.255.255",
        "166.12.0.0",
        "2001:200::1",
        "2620:4f:7fff::1",
        "2620:4f:8001::1",
        "2600:1406::5eff:7f00:1",
        "2001:4860:4860::8888",
        "2001:db9::1",
        "2003::1",
        "2606:4700::1",
        "3ffe::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ] {
        assert_eq!(special_purpose(address.parse().unwrap()), None, "{address} must be public");
    }
}

#[test]
fn private_use_purposes_are_marked() {
    for (address, purpose, is_private) in [
        ("127.0.0.1", Purpose::Loopback, true),
        ("::1", Purpose::Loopback, true),
        ("10.0.0.1", Purpose::PrivateNetwork, true),
        ("::ffff:10.0.0.1", Purpose::PrivateNetwork, true),
        ("fd12::1", Purpose::PrivateNetwork, true),
        ("100.64.0.1", Purpose::CarrierNat, true),
        ("100.100.100.200", Purpose::Metadata, false),
        ("169.254.169.254", Purpose::Metadata, false),
        ("64:ff9b::169.254.169.254", Purpose::Metadata, false),
        ("192.0.0.192", Purpose::Metadata, false),
        ("168.63.129.16", Purpose::Metadata, false),
        ("fd00:ec2::254", Purpose::Metadata, false),
        ("169.254.1.1", Purpose::LinkLocal, false),
        ("0.0.0.0", Purpose::ThisNetwork, false),
        ("::", Purpose::ThisNetwork, false),
        ("224.0.0.1", Purpose::Multicast, false),
        ("255.255.255.255", Purpose::Reserved, false),
        ("::8.8.8.8", Purpose::Reserved, false),
        ("2001:0:808:808::1", Purpose::Tunnel, false),
        ("2002:808:808::1", Purpose::Tunnel, false),
        ("64:ff9b:1::808:808", Purpose::Tunnel, false),
    ] {
        let found = special_purpose(address.parse().unwrap());
        assert_eq!(found, Some(purpose), "{address}");
        assert_eq!(purpose.is_private_use(), is_private, "{address}");
    }
}

proptest! {
    /// The standard library knows some of the blocks. What it calls special must be refused.
    #[test]
    fn agrees_with_the_standard_library(bits in any::<u32>()) {
        let address = Ipv4Addr::from(bits);
        if address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
            || address.is_broadcast() || address.is_documentation() || address.is_unspecified()
        {
            prop_assert!(special_purpose(IpAddr::V4(address)).is_some());
        }
    }

    #[test]
    fn embedding_an_ipv4_address_grants_no_access(bits in any::<u32>()) {
        let inner = Ipv4Addr::from(bits);
        let plain = special_purpose(inner.into());
        prop_assert_eq!(special_purpose(inner.to_ipv6_mapped().into()), plain);
        let nat64 = Ipv6Addr::from((0x0064_ff9b_u128 << 96) | u128::from(bits));
        prop_assert_eq!(special_purpose(nat64.into()), plain);
        prop_assert!(special_purpose(Ipv6Addr::from(u128::from(bits)).into()).is_some(), "IPv4-compatible");
        let six_to_four = Ipv6Addr::from((0x2002_u128 << 112) | (u128::from(bits) << 80));
        prop_assert!(special_purpose(six_to_four.into()).is_some());
    }

    #[test]
    fn nothing_outside_global_unicast_is_public(bits in any::<u128>()) {
        let address = Ipv6Addr::from(bits);
        if address.segments()[0] >> 13 != 1 && address.to_ipv4_mapped().is_none() && bits >> 32 != 0x0064_ff9b << 64 {
            prop_assert!(special_purpose(address.into()).is_some());
        }
    }

    #[test]
    fn a_mapped_address_reaches_what_it_maps(bits in any::<u32>()) {
        let inner = Ipv4Addr::from(bits);
        prop_assert_eq!(reached_address(inner.to_ipv6_mapped().into()), IpAddr::V4(inner));
        prop_assert_eq!(reached_address(inner.into()), IpAddr::V4(inner));
    }
}
