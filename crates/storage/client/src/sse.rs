//! The messages of an event stream (HTML standard, section 9.2.6). The decoder has no limit, so
//! this module adds one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use sse_stream::SseByteStream;

/// The most bytes of one message, far above the JSON of the largest record's event.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// The id of this message, or of the last one before it that had one.
    pub(crate) id: String,
    pub(crate) data: String,
}

/// The messages in these bytes. The stream ends after an error.
pub(crate) fn messages(
    bytes: impl Stream<Item = Result<Bytes, String>> + Send + 'static,
) -> BoxStream<'static, Result<Message, String>> {
    let since_message = Arc::new(AtomicUsize::new(0));
    let counted = since_message.clone();
    let bounded = bytes.map(move |part| {
        let part = part.map_err(io::Error::other)?;
        if counted.fetch_add(part.len(), Relaxed) + part.len() > MOST_BYTES {
            return Err(io::Error::other("a message is too long"));
        }
        Ok(part)
    });
    let mut id = String::new();
    let messages = SseByteStream::new(bounded).filter_map(move |block| {
        let message = block.map(|block| {
            since_message.store(0, Relaxed);
            if let Some(given) = block.id {
                id = given;
            }
            block.data.map(|data| Message { id: id.clone(), data })
        });
        std::future::ready(message.map_err(|error| error.to_string()).transpose())
    });
    messages.boxed()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures::executor::block_on;

    use super::*;

    fn read(parts: Vec<Vec<u8>>) -> Vec<Result<Message, String>> {
        block_on(messages(futures::stream::iter(parts).map(|part| Ok(part.into()))).collect())
    }

    fn message(id: &str, data: &str) -> Message {
        Message { id: id.into(), data: data.into() }
    }

    #[test]
    fn an_id_applies_until_the_next_one_and_does_not_complete_a_message() {
        let text = b": ping\n\nid: 7\n\ndata: a\n\ndata: b\r\n\rid: 8\ndata\n\nid\ndata: c\ndata: d\n\ndata: e";
        let expected = [message("7", "a"), message("7", "b"), message("8", ""), message("", "c\nd")].map(Ok);
        assert_eq!(read(vec![text.to_vec()]), expected);
        assert_eq!(read(text.iter().map(|byte| vec![*byte]).collect()), expected);
    }

    #[test]
    fn a_message_above_the_limit_is_refused() {
        let part = vec![b'x'; MOST_BYTES / 2];
        assert_eq!(read(vec![b"data:".to_vec(), part.clone()]), []);
        let read = read(vec![b"data: a\n\n".to_vec(), part.clone(), part, b"x".to_vec()]);
        assert!(read[0].is_ok() && read[1].as_ref().unwrap_err().contains("too long"), "{}", read.len());
    }
}
