//! The fields of `implementation` that a tool's author writes.

use std::collections::BTreeMap;

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::template::Template;

#[derive(Debug)]
pub(super) struct Settings {
    pub url: Template,
    pub method: Method,
    pub headers: BTreeMap<String, String>,
    pub auth: Option<Auth>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether arguments that the URL does not use go into the body.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// A header with a secret.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Auth {
    /// `Authorization: Bearer <secret>`.
    Bearer { secret: String },
    /// `<header>: <secret>`; the header is `X-API-Key` by default.
    ApiKey {
        secret: String,
        #[serde(default = "api_key_header")]
        header: String,
    },
}

fn api_key_header() -> String {
    "X-API-Key".into()
}

impl Auth {
    pub fn secret(&self) -> &str {
        match self {
            Self::Bearer { secret } | Self::ApiKey { secret, .. } => secret,
        }
    }
}

/// The fields as the record has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSettings {
    #[serde(rename = "type")]
    _kind: String,
    url: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    auth: Option<Auth>,
}

impl Settings {
    /// The error names the invalid field and what is accepted.
    pub fn read(settings: &Map<String, Value>, required_secrets: &[String]) -> Result<Self, ToolFailure> {
        let written = RawSettings::deserialize(Value::Object(settings.clone())).map_err(|e| wrong("", e))?;
        let method = match written.method.as_str() {
            "" => Method::default(),
            text => Method::deserialize(Value::String(text.to_ascii_uppercase())).map_err(|_| {
                wrong("method", format!("{text:?} is not supported; expected GET, HEAD, POST, PUT, PATCH or DELETE"))
            })?,
        };
        for (name, value) in &written.headers {
            check_header(name, value).map_err(|problem| wrong("headers", problem))?;
        }
        if let Some(auth) = &written.auth {
            if let Auth::ApiKey { header, .. } = auth {
                check_header(header, "").map_err(|problem| wrong("auth.header", problem))?;
            }
            if !required_secrets.iter().any(|name| name == auth.secret()) {
                let secret = auth.secret();
                return Err(wrong("auth.secret", format!("{secret:?} must also be in the tool's required_secrets")));
            }
        }
        let url = Template::parse(&written.url).map_err(|problem| wrong("url", problem))?;
        Ok(Self { url, method, headers: written.headers, auth: written.auth })
    }
}

fn check_header(name: &str, value: &str) -> Result<(), String> {
    reqwest::header::HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("{name:?} is not a valid header name"))?;
    reqwest::header::HeaderValue::from_str(value)
        .map_err(|_| format!("the value of {name} has characters that are not allowed in a header"))?;
    Ok(())
}

fn wrong(field: &str, problem: impl std::fmt::Display) -> ToolFailure {
    let field = if field.is_empty() { "implementation".to_owned() } else { format!("implementation.{field}") };
    let problem = problem.to_string();
    let message = format!("{field}: {problem}");
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
        .with_details(json!({"errors": [{"field": field, "message": problem}]}))
}
