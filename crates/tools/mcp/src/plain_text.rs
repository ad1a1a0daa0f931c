//! What errors of `rmcp` say to a person. Its own texts have names of types.

use std::error::Error;

use rcrt_breadcrumb::OpError;
use rmcp::model::ProtocolVersion;
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// Of a transport.
pub fn of_transport(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<StreamableHttpError<OpError>>() {
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => text.clone().into_owned(),
        Some(StreamableHttpError::UnexpectedContentType(kind)) => format!(
            "the server responded with the content type {:?}; expected application/json or text/event-stream",
            kind.as_deref().unwrap_or_default()
        ),
        Some(StreamableHttpError::Deserialize(error)) => {
            format!("the response is not a message of the protocol: {error}")
        }
        Some(StreamableHttpError::SessionExpired) => "the server ended the session".to_owned(),
        Some(StreamableHttpError::TransportChannelClosed | StreamableHttpError::UnexpectedEndOfStream) => {
            "the connection ended".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Of an attempt to connect.
pub fn of_start(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => of_transport(error.error.as_ref()),
        // The second attempt says more than that both failed.
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_start(fallback),
        ClientInitializeError::JsonRpcError(stated) => {
            format!("the server responded with an error: {}", stated.message)
        }
        ClientInitializeError::ConnectionClosed(_) => "the connection ended before the server responded".to_owned(),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let theirs: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            format!("the server speaks only other revisions of the protocol: {}", theirs.join(", "))
        }
        _ => "the server did not respond as the protocol says".to_owned(),
    }
}

/// The egress gate's error among the causes, or why a program was stopped.
pub fn stated(error: &(dyn Error + 'static)) -> Option<OpError> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(present) = cause {
        if let Some(found) = present.downcast_ref::<OpError>() {
            return Some(found.clone());
        }
        if let Some(StreamableHttpError::Client(found)) = present.downcast_ref::<StreamableHttpError<OpError>>() {
            return Some(found.clone());
        }
        cause = present.source();
    }
    None
}
