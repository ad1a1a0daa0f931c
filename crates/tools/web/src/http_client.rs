//! One GET through the egress gate, within limits.

use std::time::Duration;

use futures::TryStreamExt;
use rcrt_breadcrumb::{ErrorCode, FetchRequest, Redirect, ToolFailure};
use rcrt_egress::{Connections, Egress, EgressContext, NetRules, Origin};
use rcrt_executors::ToolCall;
use url::Url;

use crate::failures::{failed, from_egress_error};

/// The limits of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchLimits {
    pub time: Duration,
    pub bytes: usize,
    pub redirects: usize,
}

/// A response with any status.
#[derive(Debug, Clone)]
pub(crate) struct HttpResponse {
    /// The final URL, after redirects.
    pub url: Url,
    pub status: u16,
    pub reason: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body was larger than the limit and is cut.
    pub is_cut: bool,
}

impl HttpResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// `404 Not Found`.
    pub fn status_line(&self) -> String {
        format!("{} {}", self.status, self.reason).trim_end().to_owned()
    }
}

/// Sends a tool's requests.
pub(crate) struct HttpClient<'c> {
    pub gate: &'c Egress,
    pub call: &'c ToolCall,
    pub rules: &'c NetRules,
    pub connections: &'c Connections,
    pub bounds: FetchLimits,
    /// `None`: the gate's own.
    pub user_agent: Option<&'c str>,
}

impl HttpClient<'_> {
    /// Fails with `Timeout` if it takes too long, else with the gate's refusals and errors.
    pub async fn get(&self, url: &Url, headers: &[(&str, &str)]) -> Result<HttpResponse, ToolFailure> {
        let time = self.bounds.time;
        let host = url.host_str().unwrap_or_default();
        self.call.progress.report(None, &format!("asking {host}"));
        tokio::time::timeout(time, self.send(url, headers)).await.unwrap_or_else(|_| {
            Err(ToolFailure::new(ErrorCode::Timeout, format!("{host} did not respond completely within {time:?}")))
        })
    }

    async fn send(&self, url: &Url, headers: &[(&str, &str)]) -> Result<HttpResponse, ToolFailure> {
        let observer = self.call.request_observer();
        let ask = EgressContext {
            tool: &self.call.definition.name,
            rules: self.rules,
            vault: &self.call.secrets,
            connections: self.connections,
            origin: Some(Origin::from(self.call)),
            observer: observer.as_ref(),
        };
        let request = FetchRequest {
            method: "GET".into(),
            url: url.to_string(),
            headers: headers
                .iter()
                .copied()
                .chain(self.user_agent.map(|agent| ("user-agent", agent)))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            redirect: Redirect::Follow,
        };
        let fetched = self.gate.fetch_following(ask, request, None, self.bounds.redirects).await;
        let mut response = fetched.map_err(from_egress_error)?;
        let mut body = Vec::new();
        let mut is_cut = false;
        while let Some(piece) = response.body.try_next().await.map_err(from_egress_error)? {
            let room = self.bounds.bytes - body.len();
            body.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                is_cut = true;
                break;
            }
        }
        let url = Url::parse(&response.url).map_err(|error| failed(format!("the answer's address: {error}")))?;
        Ok(HttpResponse {
            url,
            status: response.status,
            reason: response.status_text,
            headers: response.headers,
            body,
            is_cut,
        })
    }
}

/// The hosts that the tool can reach, by its own definition.
pub(crate) fn rules_of(call: &ToolCall) -> Result<NetRules, ToolFailure> {
    NetRules::read(&call.definition.permissions.net).map_err(|error| failed(format!("permissions.net: {error}")))
}
