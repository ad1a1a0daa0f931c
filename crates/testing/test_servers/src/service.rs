//! An HTTP service that records its requests.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::response::IntoResponse;
use axum::routing::any;

use crate::network::serve;

/// A request as the server received it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub uri: Uri,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A server that records its requests and responds as the test says.
pub struct Service {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Service {
    pub async fn new<F, R>(answer: F) -> Self
    where
        F: Fn(Seen) -> R + Clone + Send + Sync + 'static,
        R: IntoResponse + 'static,
    {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let remembered = seen.clone();
        let handle = move |request: Request| {
            let (answer, remembered) = (answer.clone(), remembered.clone());
            async move {
                let one = read(request).await;
                remembered.lock().unwrap().push(one.clone());
                answer(one).into_response()
            }
        };
        let port = serve(Router::new().fallback(any(handle))).await;
        Self { port, seen }
    }

    pub async fn ok() -> Self {
        Self::new(|_| "ok").await
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn last(&self) -> Seen {
        self.seen().pop().unwrap()
    }
}

async fn read(request: Request) -> Seen {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    let latin1 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), latin1(value.as_bytes()))).collect();
    Seen { uri: parts.uri, headers, body: String::from_utf8_lossy(&body).into_owned() }
}
