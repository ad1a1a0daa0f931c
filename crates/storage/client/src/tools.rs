//! The server's operations on tools: the catalog, and calls in one round trip.

use std::time::Duration;

use rcrt_breadcrumb::{Catalog, CatalogEntry, Profile, Registration, StoreError, ToolFormat, ToolResponse};
use reqwest::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    Client,
    request::{RESPONSE_TIMEOUT, Request, RetryPolicy},
};

/// The input of a call and its options. The server decides what is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Invocation {
    pub input: Value,
    /// The tag `workspace:…`, or the name after the colon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The conversation whose working memory gets large results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The model that will read the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result_chars: Option<u64>,
    /// Milliseconds from the time when the request is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The version of the tool's record that must run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The definition that must run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition_hash: Option<String>,
    #[serde(rename = "requestId", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The caller's trace context, in the format of the header with the same name.
    #[serde(skip)]
    pub traceparent: Option<String>,
}

/// The result of a call in one round trip.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Invoked {
    /// The response, which can be a failure of the tool.
    Answered(Box<ToolResponse>),
    /// The request has no response yet. The response will have the tag `request:<request_id>`.
    Waiting { request: Uuid, request_id: String },
}

/// A draft that was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedTool {
    pub tool_id: Uuid,
    pub name: String,
    pub record_version: i64,
}

/// What a search for tools found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundTools {
    pub tools: Vec<ScoredTool>,
    /// The services that fit the text best, as the server describes them.
    #[serde(default)]
    pub hints: Vec<Value>,
}

/// A tool that fits a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoredTool {
    #[serde(flatten)]
    pub tool: Registration,
    /// From 0 to 1.
    pub score: f64,
}

impl Client {
    /// The tools of the agent's profile, including those with missing requirements.
    pub async fn tools(&self) -> Result<Catalog, StoreError> {
        self.catalog(None, None).await
    }

    /// The same in the format of a model's API, also filtered by `profile`.
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

    /// The tools that fit a text, the best first, each with its `score`, and `hints`: the services
    /// that fit it.
    pub async fn find_tools(
        &self,
        text: &str,
        limit: Option<u32>,
        profile: Option<Profile>,
    ) -> Result<FoundTools, StoreError> {
        let mut request = Request::new(Method::GET, &["tools"], RetryPolicy::Idempotent);
        request.query.push(("for", text.to_owned()));
        request.query.extend(limit.map(|limit| ("limit", limit.to_string())));
        request.query.extend(profile.map(|profile| ("profile", profile.to_string())));
        Ok(self.send(request).await?)
    }

    /// The catalog entry of a tool. If there is none, [`StoreError::Invalid`] with similar names.
    pub async fn tool(&self, name: &str) -> Result<CatalogEntry, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["tools", name], RetryPolicy::Idempotent)).await?)
    }

    /// Publishes the draft with this name. `tool_id` is required if several agents have one;
    /// `version` is the version of the record that was reviewed. For curators.
    pub async fn publish_tool(
        &self,
        name: &str,
        tool_id: Option<Uuid>,
        version: Option<i64>,
    ) -> Result<PublishedTool, StoreError> {
        let path = ["tools", name, "publish"];
        let body = json!({"tool_id": tool_id, "version": version});
        // A repetition after a lost response would find no draft.
        Ok(self.send(Request::new(Method::POST, &path, RetryPolicy::IfNotProcessed).json(&body)?).await?)
    }

    /// Calls a tool and waits for the response, up to `wait` (in whole seconds, at most 60; zero:
    /// not at all). A lost connection causes no second request: without a key from the caller, the
    /// call gets one. The same key with the same invocation waits again for the response to the
    /// first request.
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
        if let Some(traceparent) = &invocation.traceparent {
            request = request.header("traceparent", traceparent)?;
        }
        request.time = RESPONSE_TIMEOUT + wait;
        Ok(self.send(request).await?)
    }
}
