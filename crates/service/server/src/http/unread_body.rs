//! Reads the rest of a refused request's body, within limits. A server that closes a connection
//! with unread data resets it, and the caller never sees the reason.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::header,
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use futures::StreamExt;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

const MOST_BYTES: usize = 64 * 1024 * 1024;
const MOST_TIME: Duration = Duration::from_secs(10);

/// The middleware: runs the request, then reads the unread part of the body.
pub async fn discard_unread(request: Request, next: Next) -> Response {
    // A caller with `Expect: 100-continue` sends no body until it is asked to.
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return next.run(request).await;
    }
    let (returned, mut rest) = oneshot::channel();
    let request = request.map(|inner| Body::new(ReturnedBody { inner, returned: Some(returned) }));
    let response = next.run(request).await;
    if let Ok(body) = rest.try_recv() {
        let _ = tokio::time::timeout(MOST_TIME, discard(body)).await;
    }
    response
}

async fn discard(body: Body) {
    let mut body = body.into_data_stream();
    let mut read = 0;
    while let Some(Ok(part)) = body.next().await {
        read += part.len();
        if read > MOST_BYTES {
            return;
        }
    }
}

/// A body that is sent back to the middleware if it is dropped before its end.
struct ReturnedBody {
    inner: Body,
    returned: Option<oneshot::Sender<Body>>,
}

impl HttpBody for ReturnedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for ReturnedBody {
    fn drop(&mut self) {
        if !self.inner.is_end_stream()
            && let Some(returned) = self.returned.take()
        {
            let _ = returned.send(std::mem::take(&mut self.inner));
        }
    }
}
