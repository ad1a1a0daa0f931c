//! One request and its response, with the repetitions that are safe.

use std::time::Duration;

use bytes::Bytes;
use rcrt_breadcrumb::StoreError;
use reqwest::{
    Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;

use crate::{Client, problem};

/// The timeout of a response, unless the request is meant to wait.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// How often a request is sent at most. With the pauses between, that takes about three seconds: a
/// restart of the server.
pub(crate) const ATTEMPTS: u32 = 6;

/// What is safe if no response came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryPolicy {
    /// Doing it twice has the same effect as doing it once.
    Idempotent,
    /// Repeat only if it is certain that the server did not process it.
    IfNotProcessed,
}

/// A request that can be sent more than once.
pub(crate) struct Request<'r> {
    pub(crate) method: Method,
    pub(crate) path: &'r [&'r str],
    pub(crate) query: Vec<(&'static str, String)>,
    /// More parameters, from [`Self::selecting`].
    pub(crate) selected: Vec<(String, String)>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Bytes>,
    pub(crate) retry: RetryPolicy,
    /// The timeout of the response, from the first byte sent to the last received.
    pub(crate) time: Duration,
    /// Sent without a token: the route where tokens are fetched.
    pub(crate) anonymous: bool,
}

/// An error, and whether an earlier attempt of the same request may have been processed.
pub(crate) struct Refusal {
    pub(crate) error: StoreError,
    pub(crate) maybe_processed: bool,
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        refusal.error
    }
}

impl<'r> Request<'r> {
    pub(crate) fn new(method: Method, path: &'r [&'r str], retry: RetryPolicy) -> Self {
        Self {
            method,
            path,
            query: Vec::new(),
            selected: Vec::new(),
            headers: Vec::new(),
            body: None,
            retry,
            time: RESPONSE_TIMEOUT,
            anonymous: false,
        }
    }

    pub(crate) fn json<T: Serialize>(mut self, body: &T) -> Result<Self, StoreError> {
        self.body = Some(serde_json::to_vec(body).map_err(|error| not_json(&error))?.into());
        Ok(self)
    }

    /// Makes parameters of the fields that are set.
    pub(crate) fn selecting(mut self, query: &impl Serialize) -> Result<Self, StoreError> {
        if let Value::Object(fields) = serde_json::to_value(query).map_err(|error| not_json(&error))? {
            self.selected.extend(fields.into_iter().filter_map(|(name, value)| match value {
                Value::Null => None,
                Value::String(text) => Some((name, text)),
                other => Some((name, other.to_string())),
            }));
        }
        Ok(self)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self, StoreError> {
        let value = HeaderValue::try_from(value)
            .map_err(|_| StoreError::Invalid(rcrt_breadcrumb::Violations::one(name, "must be ASCII text")))?;
        self.headers.push((HeaderName::from_static(name), value));
        Ok(self)
    }
}

fn not_json(error: &serde_json::Error) -> StoreError {
    StoreError::Internal(format!("cannot serialize to JSON: {error}"))
}

/// An attempt that failed.
struct Failure {
    error: StoreError,
    /// The server may have processed it.
    maybe_processed: bool,
}

impl Client {
    /// Sends the request until there is a final response.
    pub(crate) async fn send<T: DeserializeOwned>(&self, request: Request<'_>) -> Result<T, Refusal> {
        Ok(self.send_with_headers(request).await?.0)
    }

    /// [`Self::send`], with the headers of the response.
    pub(crate) async fn send_with_headers<T: DeserializeOwned>(
        &self,
        request: Request<'_>,
    ) -> Result<(T, HeaderMap), Refusal> {
        let mut maybe_processed = false;
        let mut attempt = 1;
        loop {
            let failure = match self.send_once(&request).await {
                Ok((headers, body)) => {
                    let read = serde_json::from_slice(&body).map_err(|error| Refusal {
                        error: StoreError::Internal(format!(
                            "the server's response is invalid: {error}; check the address"
                        )),
                        maybe_processed: true,
                    });
                    return Ok((read?, headers));
                }
                Err(failure) => failure,
            };
            let again = failure.error.is_retryable()
                && failure.error != StoreError::Full
                && attempt < ATTEMPTS
                && (request.retry == RetryPolicy::Idempotent || !failure.maybe_processed);
            let pause = pause(attempt);
            if !again || self.bounded(pause) < pause {
                return Err(Refusal { error: failure.error, maybe_processed });
            }
            maybe_processed |= failure.maybe_processed;
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn send_once(&self, request: &Request<'_>) -> Result<(HeaderMap, Bytes), Failure> {
        let not_sent = |error| Failure { error, maybe_processed: false };
        let mut renewed = false;
        loop {
            let authorization =
                if request.anonymous { None } else { Some(Box::pin(self.authorization()).await.map_err(not_sent)?) };
            let mut sending = self
                .http()
                .map_err(not_sent)?
                .request(request.method.clone(), self.url(request.path).map_err(not_sent)?)
                .query(&request.query)
                .query(&request.selected)
                .timeout(self.bounded(request.time));
            for (name, value) in &request.headers {
                sending = sending.header(name, value);
            }
            if let Some(header) = &authorization {
                sending = sending.header(AUTHORIZATION, header);
            }
            if let Some(agent) = self.on_behalf_of {
                sending = sending.header("x-acting-for", agent.to_string());
            }
            if let Some(body) = &request.body {
                sending = sending.header(CONTENT_TYPE, "application/json").body(body.clone());
            }
            let answer = sending.send().await.map_err(|error| transport(&error))?;
            let status = answer.status();
            let headers = answer.headers().clone();
            let body = answer.bytes().await.map_err(|error| transport(&error))?;
            if status.is_success() {
                return Ok((headers, body));
            }
            // A token can become invalid early, such as by a change of the server's key. Try once
            // with a new token.
            if status == StatusCode::UNAUTHORIZED
                && !renewed
                && authorization.is_some_and(|header| self.tokens.refused(&header))
            {
                renewed = true;
                continue;
            }
            let error = problem::error(status, &headers, &body);
            return Err(Failure { maybe_processed: status.is_server_error(), error });
        }
    }
}

fn transport(error: &reqwest::Error) -> Failure {
    if error.is_builder() {
        return Failure { error: StoreError::Internal(error.to_string()), maybe_processed: false };
    }
    Failure { error: StoreError::Unavailable(reason(error)), maybe_processed: !error.is_connect() }
}

/// The error's innermost cause, without the URL: the caller knows it, and it can contain a token.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.is_timeout() {
        "no response in time".into()
    } else if std::ptr::addr_eq(cause, std::ptr::from_ref(error)) {
        "the connection failed".into()
    } else {
        cause.to_string()
    }
}

/// The pause before the next attempt: 0.1 s, doubled each time up to 5 s. Up to half of it is
/// random, so that clients do not all retry at once after a restart.
pub(crate) fn pause(attempt: u32) -> Duration {
    let full =
        Duration::from_millis(100).saturating_mul(1 << attempt.saturating_sub(1).min(10)).min(Duration::from_secs(5));
    let chance = f64::from((Uuid::new_v4().as_u128() & 0xffff) as u16) / 65536.0;
    full.mul_f64(0.5 + chance / 2.0)
}
