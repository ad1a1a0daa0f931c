//! A response body that holds a guard until it is sent or dropped.

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

struct GuardedBody<T> {
    inner: Body,
    guard: Option<T>,
}

/// Returns the response with a body that drops `guard` at its end.
pub fn attach<T: Send + Unpin + 'static>(response: Response, guard: T) -> Response {
    response.map(|inner| Body::new(GuardedBody { inner, guard: Some(guard) }))
}

impl<T: Unpin> HttpBody for GuardedBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.guard = None;
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
