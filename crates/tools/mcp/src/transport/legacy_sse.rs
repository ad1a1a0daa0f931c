//! The transport of the revision 2024-11-05, HTTP+SSE: one long stream of events, whose first one
//! names the URL that takes messages.

use std::borrow::Cow;
use std::collections::HashMap;

use futures::StreamExt;
use futures::stream::BoxStream;
use rcrt_breadcrumb::OpError;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpClient, StreamableHttpError};
use sse_stream_of_rmcp::Sse;
use url::Url;

use super::EgressClient;

type Failed = StreamableHttpError<OpError>;

pub struct LegacySseTransport {
    client: EgressClient,
    /// Where messages go.
    endpoint: String,
    events: Option<BoxStream<'static, Result<Sse, SseError>>>,
}

impl LegacySseTransport {
    /// Opens the stream, and waits for the event that names the URL for messages.
    pub async fn open(client: EgressClient, url: &Url) -> Result<Self, Failed> {
        let mut events = client.get_stream(url.as_str().into(), None, None, None, HashMap::new()).await?;
        while let Some(event) = events.next().await {
            let event = event?;
            if event.event.as_deref() != Some("endpoint") {
                continue;
            }
            let named = event.data.unwrap_or_default();
            let endpoint = url.join(named.trim()).ok().filter(|endpoint| endpoint.origin() == url.origin());
            let endpoint =
                endpoint.ok_or_else(|| unexpected("the endpoint that the server names is of another origin"))?;
            return Ok(Self { client, endpoint: endpoint.into(), events: Some(events) });
        }
        Err(unexpected("the server names no endpoint"))
    }
}

fn unexpected(text: &'static str) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(Cow::Borrowed(text))
}

impl Transport<RoleClient> for LegacySseTransport {
    type Error = Failed;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Failed>> + Send + 'static {
        let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
        async move { client.post_only(&endpoint, &item).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let events = self.events.as_mut()?;
        loop {
            match events.next().await? {
                Ok(event) => {
                    let data = event.data.unwrap_or_default();
                    match serde_json::from_str(&data) {
                        Ok(message) => return Some(message),
                        Err(error) => tracing::debug!(%error, "an MCP server sent an event that is not a message"),
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the events of an MCP server ended");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Failed> {
        self.events = None;
        Ok(())
    }
}
