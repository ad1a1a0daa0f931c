//! The runner's own addresses. A public one of them leads inside as well: to what listens on this machine.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;

/// Tells this machine's addresses; asked anew for every dial, since interfaces come and go.
pub trait Interfaces: std::fmt::Debug + Send + Sync + 'static {
    /// Of every interface, up or down.
    fn addresses(&self) -> io::Result<HashSet<IpAddr>>;
}

/// What the system says.
#[derive(Debug, Default)]
pub struct SystemInterfaces;

impl Interfaces for SystemInterfaces {
    fn addresses(&self) -> io::Result<HashSet<IpAddr>> {
        let of_internet = |address: nix::ifaddrs::InterfaceAddress| {
            let address = address.address?;
            let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
            four.or_else(|| address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
        };
        Ok(nix::ifaddrs::getifaddrs()?.filter_map(of_internet).collect())
    }
}
