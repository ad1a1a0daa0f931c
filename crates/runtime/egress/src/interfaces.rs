//! The addresses of the runner's own machine. A public one is internal too: services that listen on
//! this machine are behind it.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;

/// Lists this machine's addresses. They are read for every connection, because interfaces change.
pub trait Interfaces: std::fmt::Debug + Send + Sync + 'static {
    /// The addresses of every interface, up or down.
    fn addresses(&self) -> io::Result<HashSet<IpAddr>>;
}

/// The addresses that the operating system reports.
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
