//! One attempt: signed and sent through the egress gate. The body of the response is only drained.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use rcrt_breadcrumb::{Delivery, FetchRequest, FetchResponse, Host, OpError, Redirect};
use rcrt_egress::{Connections, Egress, EgressContext, NetRules, Origin, Vault};
use tokio::time::timeout;
use url::Url;

use crate::outcome::AttemptResult;
use crate::signature::sign;

/// The name of webhooks where operators allow a private host.
const NAME: &str = "webhooks";
/// How long to read a response after its status is known.
const DRAIN_TIME: Duration = Duration::from_secs(2);

pub(crate) async fn attempt(
    gate: &Egress,
    connections: &Connections,
    delivery: &Delivery,
    now: DateTime<Utc>,
) -> AttemptResult {
    let body = match &delivery.call {
        None => delivery.payload.clone(),
        Some(call) => match rcrt_a2a_server::notification(&delivery.payload, call.request, &call.context_id) {
            Some(update) => update.to_string(),
            // The event is no update of the task.
            None => return AttemptResult::Answered { status: 204, retry_after: None },
        },
    };
    match post(gate, connections, delivery, body, now).await {
        Ok(answer) => {
            let ended =
                AttemptResult::Answered { status: answer.status, retry_after: retry_after(&answer.headers, now) };
            // The body is not used. It is read for a while, within the gate's limits, so that the
            // connection can be reused.
            let mut body = answer.body;
            let rest = async { while let Some(Ok(_)) = body.next().await {} };
            let _ = timeout(DRAIN_TIME, rest).await;
            ended
        }
        Err(error) if error.name == "PermissionDenied" => AttemptResult::Refused(error_text(&error)),
        Err(error) => AttemptResult::Failed(error_text(&error)),
    }
}

fn error_text(error: &OpError) -> String {
    error.message.clone()
}

async fn post(
    gate: &Egress,
    connections: &Connections,
    delivery: &Delivery,
    body: String,
    now: DateTime<Utc>,
) -> Result<FetchResponse, OpError> {
    let refused = |why: String| OpError::new("PermissionDenied", why);
    let url = Url::parse(&delivery.url).map_err(|error| refused(format!("the URL is not valid: {error}")))?;
    let (Some(host), Some(port)) = (Host::of(&url), url.port_or_known_default()) else {
        return Err(refused("the URL has no host or no port".into()));
    };
    let rules = NetRules::only(host, port);
    let vault = Vault::default();
    let request = FetchRequest {
        method: "POST".into(),
        url: delivery.url.clone(),
        headers: headers(delivery, &body, now.timestamp()),
        redirect: Redirect::Manual,
    };
    let body = Bytes::from(body);
    let body = stream::once(async move { Ok(body) }).boxed();
    let origin = Origin { owner_id: delivery.owner_id, agent_id: None, tool_id: None, call: Some(delivery.id) };
    let ask =
        EgressContext { tool: NAME, rules: &rules, vault: &vault, connections, origin: Some(origin), observer: None };
    gate.fetch(ask, request, Some(body)).await
}

fn headers(delivery: &Delivery, body: &str, timestamp: i64) -> Vec<(String, String)> {
    let media = if delivery.call.is_some() { "application/a2a+json" } else { "application/json" };
    let mut headers = vec![
        ("content-type".to_owned(), media.to_owned()),
        ("webhook-id".to_owned(), delivery.id.to_string()),
        ("webhook-timestamp".to_owned(), timestamp.to_string()),
    ];
    if let Some(secret) = &delivery.secret {
        let signed = sign(secret, delivery.id, timestamp, body);
        headers.push(("webhook-signature".to_owned(), signed.standard));
        headers.push(("x-rcrt-signature".to_owned(), signed.rcrt));
    }
    headers.extend(delivery.call.iter().flat_map(|call| call.headers.iter().cloned()));
    headers
}

/// Seconds, or an HTTP date.
fn retry_after(headers: &[(String, String)], now: DateTime<Utc>) -> Option<Duration> {
    let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let until = DateTime::parse_from_rfc2822(value).ok()?;
    (until.to_utc() - now).to_std().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = DateTime::parse_from_rfc3339("2026-01-01T00:00:00Z").unwrap().to_utc();
        let read = |value: &str| retry_after(&[("retry-after".into(), value.into())], now);
        assert_eq!(read("120"), Some(Duration::from_mins(2)));
        assert_eq!(read("Thu, 01 Jan 2026 00:01:00 GMT"), Some(Duration::from_mins(1)));
        for nothing in ["Wed, 31 Dec 2025 23:59:00 GMT", "-1", "soon", "", "99999999999"] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
        assert_eq!(retry_after(&[], now), None);
    }
}
