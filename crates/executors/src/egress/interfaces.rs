//! The addresses of the runner's own machine. Even a public one leads inside: to what listens on
//! this machine.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;

/// Lists this machine's addresses; read again for every connection, since interfaces change.
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
