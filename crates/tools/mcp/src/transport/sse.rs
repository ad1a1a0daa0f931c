//! Events of a response, as `rmcp` takes them.

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use rcrt_breadcrumb::BodyStream;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream_of_rmcp::{Sse, SseStream};

use super::RawLists;

/// The gate bounds the body, so every event is bounded too.
pub fn events(body: BodyStream, lists: RawLists) -> BoxStream<'static, Result<Sse, SseError>> {
    SseStream::from_bytes_stream(body)
        .inspect_ok(move |event| {
            if let Some(message) = event.data.as_deref().and_then(|data| serde_json::from_str(data).ok()) {
                lists.note(&message);
            }
        })
        .boxed()
}
