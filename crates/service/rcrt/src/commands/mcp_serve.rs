//! `rcrt mcp serve`: the tools of a server for an MCP client that starts this program.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clap::Args;
use rcrt_breadcrumb::{BreadcrumbQuery, Breadcrumbs, Catalog, CatalogEntry, Records, StoreError, schema_names};
use rcrt_client::Client;
use rcrt_mcp_server::{Principal, serve_stdio};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::Config;
use crate::connection;
use crate::signals::Signals;

/// How often the catalog is read for an agent that does not see its events.
const READ_CATALOG_EVERY: Duration = Duration::from_secs(5);

/// Offer the tools of the server to an MCP client, over stdin and stdout
#[derive(Debug, Args)]
#[command(after_long_help = "\
A client starts this command; `rcrt mcp install` writes its configuration. The tools are those that the agent of the \
token can call. The command ends when the client closes stdin.

Examples:
  rcrt mcp serve
  rcrt --server https://tools.example.com mcp serve")]
pub struct Serve {}

impl Serve {
    #[allow(clippy::unused_self)] // It has no options.
    pub async fn run(self, config: &Config) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        // A wrong address or token is an error at once, and not at the first message.
        client.tools().await?;
        // An agent with only the role `caller` reads nothing but its own calls.
        let catalog = BreadcrumbQuery { limit: 1, ..BreadcrumbQuery::of_schema(schema_names::TOOL_CATALOG) };
        let sees_catalog = client.list(&catalog).await.is_ok_and(|records| !records.is_empty());
        let signals = Signals::listen()?;
        let principal = Arc::new(Agent::new(client, sees_catalog, signals.stop.clone()));
        Ok(serve_stdio(principal, signals.stop.clone()).await?)
    }
}

/// The agent of the token, over HTTP.
struct Agent {
    client: Client,
    /// Whether it sees the events of the catalog.
    sees_catalog: bool,
    store: Arc<dyn Breadcrumbs>,
    session: String,
    signing_key: [u8; 32],
    stop: CancellationToken,
}

impl Agent {
    fn new(client: Client, sees_catalog: bool, stop: CancellationToken) -> Self {
        let mut signing_key = [0; 32];
        signing_key[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        signing_key[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        let store = Arc::new(client.clone());
        let session = format!("mcp-{}", Uuid::new_v4());
        Self { client, sees_catalog, store, session, signing_key, stop }
    }
}

#[async_trait]
impl Principal for Agent {
    fn store(&self) -> &Arc<dyn Breadcrumbs> {
        &self.store
    }

    fn followed(&self) -> Arc<dyn Breadcrumbs> {
        self.store.clone()
    }

    fn reads_catalog_every(&self) -> Option<Duration> {
        (!self.sees_catalog).then_some(READ_CATALOG_EVERY)
    }

    async fn catalog(&self) -> Result<Catalog, StoreError> {
        self.client.tools().await
    }

    async fn catalog_with(&self, tool: &str) -> Result<Catalog, StoreError> {
        match self.client.tool(tool).await {
            Ok(CatalogEntry::Offered(tool)) => Ok(Catalog::new(vec![tool], Vec::new())),
            Ok(CatalogEntry::Waiting(tool)) => Ok(Catalog::new(Vec::new(), vec![tool])),
            // The list has the similar names. Another error occurs again.
            Err(_) => self.catalog().await,
        }
    }

    fn session(&self) -> &str {
        &self.session
    }

    fn signing_key(&self) -> &[u8] {
        &self.signing_key
    }

    async fn ended(&self) {
        self.stop.cancelled().await;
    }

    fn is_stopping(&self) -> bool {
        false
    }
}
