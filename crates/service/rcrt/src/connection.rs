//! Connects to a running server, as the agent of the configuration.

use std::sync::Arc;

use rcrt_breadcrumb::Breadcrumbs;
use rcrt_client::Client;

use crate::config::Config;

/// Returns a client for the configured server, without connecting.
pub fn client(config: &Config) -> anyhow::Result<Client> {
    Ok(Client::new(config.server_url()?, config.credentials()?))
}

/// The same client, as a store.
pub fn store(config: &Config) -> anyhow::Result<Arc<dyn Breadcrumbs>> {
    Ok(Arc::new(client(config)?))
}
