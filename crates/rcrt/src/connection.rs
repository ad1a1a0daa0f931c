//! Connects to a running server, as the agent of the configuration.

use std::sync::Arc;

use breadcrumb::Breadcrumbs;
use client::Client;

use crate::config::Config;

/// A client for the configured server; nothing is sent yet.
pub fn client(config: &Config) -> anyhow::Result<Client> {
    Ok(Client::new(config.server_url()?, config.credentials()?))
}

/// The same, as the store that most commands want.
pub fn store(config: &Config) -> anyhow::Result<Arc<dyn Breadcrumbs>> {
    Ok(Arc::new(client(config)?))
}
