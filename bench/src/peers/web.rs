//! A tool behind HTTP: the input is the request's body, the sum is the response's body.

use anyhow::Context;
use async_trait::async_trait;
use rcrt_load::Target;
use url::Url;

use super::sum::Sum;

/// A tool at a URL, called on persistent connections.
pub struct WebTool {
    http: reqwest::Client,
    url: Url,
}

impl WebTool {
    pub fn new(url: Url) -> anyhow::Result<Self> {
        Ok(Self { http: client()?, url })
    }
}

/// Speaks HTTP/1.1, as a client without TLS does.
pub fn client() -> anyhow::Result<reqwest::Client> {
    reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().context("an HTTP client")
}

#[async_trait]
impl Target for WebTool {
    async fn call(&self, number: u64) -> Result<(), String> {
        let sum = Sum::of(number);
        let sent = self.http.post(self.url.clone()).json(&sum).send().await;
        let answer = sent.map_err(|error| format!("the call was not sent: {error}"))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| format!("the response was incomplete: {error}"))?;
        if !status.is_success() {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
        }
        let answer = serde_json::from_slice(&body).map_err(|error| format!("the response is not a number: {error}"))?;
        sum.check(answer)
    }
}
