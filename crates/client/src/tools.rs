//! The server's operations on tools: the catalog, and calls in one round trip.

use std::time::Duration;

use breadcrumb::{Catalog, CatalogEntry, Profile, StoreError, ToolFormat, ToolResponse};
use reqwest::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    Client,
    request::{RESPONSE_TIMEOUT, Request, RetryPolicy},
};

/// What a tool is called with, and what is said beside it. What is absent is the server's business.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Invocation {
    pub input: Value,
    /// The tag `workspace:…`, or the name after the colon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The conversation that large results go to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The model that will read the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result_chars: Option<u64>,
    /// Milliseconds from the writing of the request on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    #[serde(rename = "requestId", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The caller's place in a trace, as the header of the same name has it.
    #[serde(skip)]
    pub traceparent: Option<String>,
}

/// How far a call came in one round trip.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Invoked {
    /// The answer, which may tell of a failure.
    Answered(Box<ToolResponse>),
    /// The request stands; its answer will be tagged `request:<request_id>`.
    Waiting { request: Uuid, request_id: String },
}

impl Client {
    /// The tools that the agent's profile sees, and those that wait for something.
    pub async fn tools(&self) -> Result<Catalog, StoreError> {
        self.catalog(None, None).await
    }

    /// The same in the form that a model's interface takes, as far as `profile` sees it, too.
    pub async fn tools_in(&self, format: ToolFormat, profile: Option<Profile>) -> Result<Value, StoreError> {
        self.catalog(Some(format), profile).await
    }

    async fn catalog<T: DeserializeOwned>(
        &self,
        format: Option<ToolFormat>,
        profile: Option<Profile>,
    ) -> Result<T, StoreError> {
        let mut request = Request::new(Method::GET, &["tools"], RetryPolicy::Idempotent);
        request.query.extend(format.map(|format| ("format", format.to_string())));
        request.query.extend(profile.map(|profile| ("profile", profile.to_string())));
        Ok(self.send(request).await?)
    }

    /// What the catalog says of a tool. [`StoreError::Invalid`], with the nearest names, when there is none.
    pub async fn tool(&self, name: &str) -> Result<CatalogEntry, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["tools", name], RetryPolicy::Idempotent)).await?)
    }

    /// Calls a tool and waits for the answer, up to `wait` (in whole seconds, at most 60; zero: not at all). A lost
    /// connection writes no second request: without a key of the caller's own the call gets one. The same key with the
    /// same invocation waits on for the answer of the first.
    pub async fn invoke(
        &self,
        tool: &str,
        invocation: &Invocation,
        wait: Duration,
        idempotency_key: Option<&str>,
    ) -> Result<Invoked, StoreError> {
        let key = idempotency_key.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        let path = ["tools", tool, "invoke"];
        let mut request = Request::new(Method::POST, &path, RetryPolicy::Idempotent)
            .json(invocation)?
            .header("idempotency-key", &key)?
            .header("prefer", &format!("wait={}", wait.as_secs()))?;
        if let Some(place) = &invocation.traceparent {
            request = request.header("traceparent", place)?;
        }
        request.time = RESPONSE_TIMEOUT + wait;
        Ok(self.send(request).await?)
    }
}
