//! The protocol over stdin and stdout, for a client that starts this program.

use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio_util::sync::CancellationToken;

use crate::Principal;
use crate::handler::Handler;

#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error("the MCP client's first message is not valid: {0}")]
    Begin(Box<ServerInitializeError>),
    #[error("the connection failed: {0}")]
    Connection(#[from] tokio::task::JoinError),
}

/// Serves the client at stdin and stdout until it closes stdin, or until `stop`.
pub async fn serve_stdio(principal: Arc<dyn Principal>, stop: CancellationToken) -> Result<(), StdioError> {
    let begun = Handler::of(principal).serve_with_ct(rmcp::transport::stdio(), stop).await;
    match begun {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(StdioError::Connection),
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(StdioError::Begin(Box::new(error))),
    }
}
