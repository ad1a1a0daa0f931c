//! Runs `tool.v1` records whose implementation is one HTTP exchange: `{"type": "http", "url":
//! "https://…/{param}", …}`.

mod conversion;
mod generated_code;
mod http_call;
mod large_responses;
mod settings;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, Implementation, ToolDefinition, ToolFailure};
use rcrt_egress::Egress;
use rcrt_sandbox::HostOps;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Executor, Hold, ToolCall, ToolOutput};

pub use conversion::{Conversion, convert};
use large_responses::LargeResponses;
use settings::Settings;

/// The `implementation.type`s that this executor runs.
pub const KINDS: [&str; 2] = ["http", "rest"];

pub struct RestExecutor {
    egress: Arc<Egress>,
    large: LargeResponses,
}

impl RestExecutor {
    pub fn new(egress: Arc<Egress>) -> Self {
        Self { egress, large: LargeResponses::default() }
    }
}

#[async_trait]
impl Executor for RestExecutor {
    async fn load(
        &self,
        definition: &ToolDefinition,
        _owner_id: Uuid,
        _tool_id: Uuid,
        _tool_version: i64,
    ) -> Result<(), ToolFailure> {
        read(definition).map(|_| ())
    }

    async fn execute(&self, call: ToolCall, cancelled: CancellationToken) -> ToolOutput {
        let (mut metadata, mut turn) = (Map::new(), None);
        let exchange = async {
            let settings = read(&call.definition)?;
            http_call::perform(&self.egress, &self.large, &settings, &call, &mut metadata, &mut turn).await
        };
        let timeout = call.limits.timeout();
        let result = tokio::select! {
            result = exchange => result,
            () = cancelled.cancelled() => Err(ToolFailure::new(ErrorCode::Cancelled, "the call was cancelled")),
            () = tokio::time::sleep(timeout) => {
                let message = format!("no response within {} ms", call.limits.timeout_ms);
                Err(ToolFailure::new(ErrorCode::Timeout, message))
            }
        };
        let hold = turn.filter(|_| result.is_ok()).map(|turn| -> Hold { Box::new(turn) });
        ToolOutput { result, metadata, hold }.cleared(call.secrets).await
    }

    fn is_io_bound(&self, _definition: &ToolDefinition) -> bool {
        true
    }

    fn forget(&self, _tool_id: Uuid, _tool_version: i64) {}
}

/// The exchange of an http tool over another network than the egress gate's, without a time limit:
/// that of an example, or one that records. `secrets`: the texts that stand for them, by name.
pub async fn exchange(
    definition: &ToolDefinition,
    input: Value,
    secrets: &BTreeMap<String, String>,
    network: &dyn HostOps,
) -> Result<Value, ToolFailure> {
    let settings = read(definition)?;
    let (request, body) = http_call::request(&settings, input, |name| secrets.get(name).map(String::as_str))?;
    let response = network.fetch(request, body).await.map_err(http_call::failure)?;
    http_call::result(response, settings.method, &LargeResponses::default(), Uuid::nil(), &mut None).await
}

fn read(definition: &ToolDefinition) -> Result<Settings, ToolFailure> {
    match &definition.implementation {
        Implementation::Native(native) => Settings::read(&native.settings, &definition.required_secrets),
        Implementation::Code(_) => {
            Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the tool is code, not an HTTP exchange"))
        }
    }
}
