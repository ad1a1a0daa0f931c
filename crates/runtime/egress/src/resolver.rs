//! Resolves names to addresses, and checks them before a connection is made.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{Resolver as Hickory, TokioResolver};

use super::address_check::{AddressScope, DialError, check_addresses};
use super::{DeniedHost, Interfaces};

/// Resolves a name.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// All addresses, IPv4 and IPv6. The error is a sentence for the tool's author.
    async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, String>;
}

/// Resolves with name servers. With the machine's own configuration it also reads the hosts file.
pub struct SystemResolver(TokioResolver);

impl SystemResolver {
    /// Reads the machine's configuration. If that fails, only names in the hosts file resolve.
    pub fn new() -> Result<Self, String> {
        let (config, options) = hickory_resolver::system_conf::read_system_conf().unwrap_or_else(|error| {
            tracing::warn!(%error, "no name servers are configured; tools reach only what the hosts file names");
            (ResolverConfig::from_parts(None, Vec::new(), Vec::new()), ResolverOpts::default())
        });
        Self::build(config.name_servers().to_vec(), options)
    }

    /// Uses only these name servers, over UDP, and TCP for large answers.
    pub fn with_servers(servers: &[SocketAddr]) -> Result<Self, String> {
        let at_port = |mut connection: ConnectionConfig, port| {
            connection.port = port;
            connection
        };
        let server = |address: &SocketAddr| {
            let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
            let connections = connections.map(|connection| at_port(connection, address.port()));
            NameServerConfig::new(address.ip(), true, connections.into())
        };
        let mut options = ResolverOpts::default();
        options.use_hosts_file = ResolveHosts::Never;
        Self::build(servers.iter().map(server).collect(), options)
    }

    fn build(servers: Vec<NameServerConfig>, mut options: ResolverOpts) -> Result<Self, String> {
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        // No search domains: only the permitted name itself is resolved.
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let mut builder = Hickory::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        builder.build().map(Self).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        match self.0.lookup_ip(format!("{name}.")).await {
            Ok(found) => Ok(found.iter().collect()),
            Err(error) if error.is_no_records_found() => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns only checked addresses to the HTTP client, so it connects to an address that was
/// checked.
pub(super) struct CheckedResolver {
    pub resolver: Arc<dyn Resolver>,
    pub reach: AddressScope,
    pub machine: Arc<dyn Interfaces>,
    pub denied: Arc<[DeniedHost]>,
    /// The timeout of one lookup.
    pub timeout: Duration,
}

impl reqwest::dns::Resolve for CheckedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let (resolver, machine, denied) = (self.resolver.clone(), self.machine.clone(), self.denied.clone());
        let (reach, timeout) = (self.reach, self.timeout);
        Box::pin(async move {
            let name = name.as_str();
            let unresolved = |reason: String| DialError::Unresolved { name: name.to_owned(), reason };
            let answer = tokio::time::timeout(timeout, resolver.lookup(name)).await;
            let late = |_| unresolved(format!("no name server answered in {} ms", timeout.as_millis()));
            let addresses = answer.map_err(late)?.map_err(unresolved)?;
            check_addresses(name, &addresses, reach, machine.as_ref(), &denied)?;
            let dialled: reqwest::dns::Addrs =
                Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(dialled)
        })
    }
}
