//! Names to addresses, and the check that stands between a name and a dial.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use hickory_resolver::config::{LookupIpStrategy, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{Resolver as Hickory, TokioResolver};

use super::address::special_purpose;

/// Asks for a name's addresses, as DNS answers.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// All addresses, IPv4 and IPv6. The error is a sentence for the tool's author.
    async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, String>;
}

/// The machine's name servers and its hosts file.
pub struct SystemResolver(TokioResolver);

impl SystemResolver {
    /// Reads the machine's configuration. Without a readable one, only the hosts file answers.
    pub fn new() -> Result<Self, String> {
        let (config, mut options) = hickory_resolver::system_conf::read_system_conf().unwrap_or_else(|error| {
            tracing::warn!(%error, "no name servers are configured; tools reach only what the hosts file names");
            (ResolverConfig::from_parts(None, Vec::new(), Vec::new()), ResolverOpts::default())
        });
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        // Without search domains: the name that was permitted is the name that is asked for.
        let config = ResolverConfig::from_parts(None, Vec::new(), config.name_servers().to_vec());
        let mut builder = Hickory::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        builder.build().map(Self).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        match self.0.lookup_ip(name).await {
            Ok(found) => Ok(found.iter().collect()),
            Err(error) if error.is_no_records_found() => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Why a name was not dialled. Found again in the chain of causes of a client's error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotDialled {
    #[error("{name} resolves to a non-public address ({purpose})")]
    NonPublic { name: String, purpose: &'static str },
    #[error("{name} cannot be resolved: {reason}")]
    Unresolved { name: String, reason: String },
}

/// Gives the HTTP client nothing but checked addresses, so that what is checked is what is dialled.
pub(super) struct CheckedResolver {
    pub resolver: Arc<dyn Resolver>,
    /// The operator allowed this host: its addresses may be of any kind.
    pub admits_private: bool,
}

impl reqwest::dns::Resolve for CheckedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let (resolver, admits_private) = (self.resolver.clone(), self.admits_private);
        Box::pin(async move {
            let addresses = checked(resolver.as_ref(), name.as_str(), admits_private).await?;
            let dialled: reqwest::dns::Addrs =
                Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(dialled)
        })
    }
}

async fn checked(resolver: &dyn Resolver, name: &str, admits_private: bool) -> Result<Vec<IpAddr>, NotDialled> {
    let unresolved = |reason: String| NotDialled::Unresolved { name: name.to_owned(), reason };
    let addresses = resolver.lookup(name).await.map_err(unresolved)?;
    if addresses.is_empty() {
        return Err(unresolved("the name has no address".into()));
    }
    // One bad address among good ones is how a name is made to point inside: refuse the whole answer.
    match addresses.iter().find_map(|address| special_purpose(*address)) {
        Some(purpose) if !admits_private => Err(NotDialled::NonPublic { name: name.to_owned(), purpose }),
        _ => Ok(addresses),
    }
}
