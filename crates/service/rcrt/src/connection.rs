//! Connects to a running server, as the agent of the configuration.

use std::sync::Arc;

use rcrt_breadcrumb::Breadcrumbs;
use rcrt_client::Client;

use crate::config::Config;

/// How long the tokens are valid that a command gets with an agent's key. The client renews them
/// while the command runs. Short, so that the commands of a script do not fill the list of tokens.
const TOKEN_TTL_SEC: u64 = 300;

/// Returns a client for the configured server, without connecting.
pub fn client(config: &Config) -> anyhow::Result<Client> {
    Ok(Client::new(config.server_url()?, config.credentials()?).with_token_ttl(TOKEN_TTL_SEC))
}

/// The same client, as a store.
pub fn store(config: &Config) -> anyhow::Result<Arc<dyn Breadcrumbs>> {
    Ok(Arc::new(client(config)?))
}
