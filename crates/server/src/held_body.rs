//! A response's body that keeps something until it was sent, or will not be.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body, HttpBody},
    response::Response,
};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

struct HeldBody<T> {
    inner: Body,
    kept: Option<T>,
}

/// The response, which drops `kept` at the end of its body.
pub fn hold<T: Send + Unpin + 'static>(response: Response, kept: T) -> Response {
    response.map(|inner| Body::new(HeldBody { inner, kept: Some(kept) }))
}

impl<T: Unpin> HttpBody for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.kept = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
