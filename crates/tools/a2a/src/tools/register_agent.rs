//! `register_agent`: adds an agent by its URL.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::check_rights;
use super::known_agent::details;
use crate::A2a;
use crate::agent::Auth;
use crate::directory::agents;
use crate::failures::{invalid, store_failed};
use crate::remote::CardWay;

pub(crate) struct RegisterAgent(pub Arc<A2a>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    url: String,
    name: Option<String>,
    auth_secret: Option<String>,
    auth_header: Option<String>,
}

#[async_trait]
impl InputTool for RegisterAgent {
    const NAME: &'static str = "register_agent";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let Input { url, name, auth_secret, auth_header } = input;
        let url = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| invalid("url", "must be an absolute http or https URL of an agent or its card"))?;
        let is_header = |name: &str| {
            !name.is_empty()
                && name.len() <= 100
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let auth = match (auth_secret, auth_header) {
            (None, None) => None,
            (None, Some(_)) => return Err(invalid("auth_header", "needs auth_secret, the name of the secret to send")),
            (Some(secret), header) => {
                let header = header.unwrap_or_else(|| "authorization".into());
                if !is_header(&header) {
                    return Err(invalid("auth_header", "must be the name of a header, such as X-API-Key"));
                }
                Some(Auth { secret, header })
            }
        };
        check_rights(call).await?;
        let found = self.0.read_card(&CardWay::of(call)?, &url).await?;
        let name = name.unwrap_or_else(|| found.read.name.clone());
        let known = agents(&*self.0.store).await.map_err(store_failed)?;
        if known.iter().any(|known| known.has_name(&name)) || self.0.well_known(&name).is_some() {
            let why =
                format!("there is already an agent {name:?}; choose another name, or unregister that agent first");
            return Err(invalid("name", why));
        }
        let known = self.0.register(found, name, auth, false).await?;
        Ok(details(&known.agent, false))
    }
}
