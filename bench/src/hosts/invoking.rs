//! Calls in one round trip, through the public API.

use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::ResponseStatus;
use rcrt_client::{Client, Invocation, Invoked};
use rcrt_load::Target;
use serde_json::Value;

/// Longer than the longest queue takes.
const WAIT: Duration = Duration::from_secs(30);

/// One tool with always the same input.
pub struct Invoking {
    pub client: Client,
    pub tool: String,
    pub input: Value,
}

#[async_trait]
impl Target for Invoking {
    async fn call(&self, _number: u64) -> Result<(), String> {
        let invocation = Invocation { input: self.input.clone(), ..Invocation::default() };
        match self.client.invoke(&self.tool, &invocation, WAIT, None).await {
            Ok(Invoked::Answered(response)) if response.status == ResponseStatus::Success => Ok(()),
            Ok(Invoked::Answered(response)) => {
                Err(response.error.unwrap_or_else(|| "a response without a result".into()))
            }
            Ok(Invoked::Waiting { .. }) => Err(format!("no response within {} s", WAIT.as_secs())),
            Err(error) => Err(error.to_string()),
        }
    }
}
