//! Connects to a running server, as the agent of the configuration.

use std::sync::Arc;

use rcrt_breadcrumb::Breadcrumbs;
use rcrt_client::Client;

use crate::config::Config;

/// The validity of a command's token for an agent's key. It is renewed while a command runs, and a
/// script's many commands do not fill the list of valid tokens.
const TOKEN_TTL_SEC: u64 = 300;

/// Returns a client for the configured server, without connecting.
pub fn client(config: &Config) -> anyhow::Result<Client> {
    Ok(Client::new(config.server_url()?, config.credentials()?).with_token_ttl(TOKEN_TTL_SEC))
}

/// The same client, as a store.
pub fn store(config: &Config) -> anyhow::Result<Arc<dyn Breadcrumbs>> {
    Ok(Arc::new(client(config)?))
}
