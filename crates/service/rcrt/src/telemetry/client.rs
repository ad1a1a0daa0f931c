//! The HTTP client of the exporters. They have their own threads and no runtime, so requests run on
//! the program's runtime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::redirect::Policy;
use tokio::runtime::Handle;

/// Maximum bytes of a response body. Only the status is used.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub struct Exporting {
    what: &'static str,
    http: reqwest::Client,
    runtime: Handle,
    /// Whether the last export failed. A failure is logged once until exports work again.
    is_failing: AtomicBool,
}

impl Exporting {
    pub fn new(what: &'static str, timeout: Duration, runtime: Handle) -> reqwest::Result<Self> {
        // A redirect would forward the headers, including the collector's key.
        let http = reqwest::Client::builder().timeout(timeout).redirect(Policy::none()).build()?;
        Ok(Self { what, http, runtime, is_failing: AtomicBool::new(false) })
    }

    fn report(&self, problem: Option<&str>) {
        match problem {
            Some(problem) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(problem, "{} cannot be exported; this is logged once until it works again", self.what);
            }
            None if self.is_failing.swap(false, Ordering::Relaxed) => {
                tracing::info!("{} are exported again", self.what);
            }
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Exporting {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request: reqwest::Request = request.try_into()?;
        let answer = self.runtime.spawn(exchange(self.http.clone(), request)).await;
        let answer = answer.map_err(HttpError::from).flatten();
        match &answer {
            Ok(answer) if answer.status().is_success() => self.report(None),
            Ok(answer) => self.report(Some(&format!("the collector returned {}", answer.status()))),
            Err(error) => self.report(Some(&chain(error.as_ref()))),
        }
        answer
    }
}

async fn exchange(http: reqwest::Client, request: reqwest::Request) -> Result<Response<Bytes>, HttpError> {
    let mut answer = http.execute(request).await.map_err(reqwest::Error::without_url)?;
    let mut response = Response::builder().status(answer.status());
    if let Some(headers) = response.headers_mut() {
        headers.extend(answer.headers().clone());
    }
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + piece.len() > MAX_ANSWER_BYTES {
            return Err(format!("the collector's response is longer than {MAX_ANSWER_BYTES} bytes").into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(response.body(body.into())?)
}

/// An error with its chain of causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
