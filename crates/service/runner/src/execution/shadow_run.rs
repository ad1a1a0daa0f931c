//! The run of a shadow beside a call of its `tool.v1`. It begins when the call is answered, and
//! only if a slot is to spare, so that it neither delays nor changes a response.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{Breadcrumb, ErrorCode, Sensitivity, ToolFailure, Visibility, shadow_share};
use rcrt_executors::{DiscardProgress, EffectGate, ToolCall};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::coordination::slots::Slot;
use crate::execution::call::CallRunner;
use crate::execution::request_event::request_event;
use crate::execution::running::Run;
use crate::execution::schema_check::{checked_input, checked_output};
use crate::execution::secrets::granted_secrets;
use crate::execution::shadow::{Outcome, Shadow, compared, report};
use crate::execution::speculative_run::PreparedRun;
use crate::registry::tool::Tool;

/// The longest run of a shadow.
const LONGEST: Duration = Duration::from_secs(30);

impl CallRunner {
    /// The shadow of this call: the tool's, for its share of the calls. `record`: the request.
    pub fn choose_shadow(
        &self,
        prepared: &PreparedRun,
        record: &Breadcrumb,
        slot: Option<&Slot>,
    ) -> Option<Box<Shadow>> {
        let legacy = prepared.tool.clone();
        let tool = self.tool_access.registry.shadow_of(&legacy)?;
        let share = shadow_share(&tool.tags)?;
        // A random part of the id, the same in each attempt.
        if record.id.as_u128() % 100 >= share.into() {
            return None;
        }
        let mut call = prepared.call().clone();
        if call.request.trigger_event.is_none() {
            call.request.trigger_event = request_event(record, &prepared.call().input);
        }
        let is_hidden = record.visibility == Visibility::Private || record.sensitivity == Sensitivity::Secret;
        Some(Box::new(Shadow { tool, legacy, call, is_hidden, slots: slot.map(Slot::slots), result: None }))
    }

    /// Runs the shadow, compares the results and counts the outcome.
    pub async fn run_shadow(&self, shadow: Box<Shadow>) {
        let Shadow { tool, legacy, call, is_hidden, slots, result } = *shadow;
        let request = call.request.id;
        let slot = slots.and_then(|slots| slots.take_spare(tool.name()));
        let outcome = match (slot, result) {
            (Some(_slot), Some(legacy)) => tokio::select! {
                biased;
                () = self.stop.cancelled() => Outcome::Skipped,
                result = self.shadow_result(&tool, call) => compared(request, legacy, result),
            },
            _ => Outcome::Skipped,
        };
        let mut report = report(&tool, &legacy, outcome);
        if is_hidden {
            report.differences.clear();
        }
        self.shadows.count(report);
    }

    async fn shadow_result(&self, tool: &Arc<Tool>, call: ToolCall) -> Result<Value, ToolFailure> {
        let mut limits = tool.definition.limits;
        limits.timeout_ms = limits.timeout_ms.min(LONGEST.as_millis() as u64);
        let ends = Instant::now() + limits.timeout();
        let result = async {
            let input = checked_input(tool, call.input.clone(), ends).await?;
            let secrets = granted_secrets(&*self.store, tool, &call.request).await?;
            let call = ToolCall {
                tool_id: tool.id,
                tool_version: tool.version,
                definition: tool.definition.clone(),
                limits,
                input,
                secrets,
                progress: Arc::new(DiscardProgress),
                deadline: Some(ends),
                effect_gate: EffectGate::opened(),
                ..call
            };
            let mut run = Run::begin(tool.clone(), call);
            run.resume().await;
            let output = run.into_output().result?;
            checked_output(tool, output, ends).await
        };
        let late = |_| ToolFailure::new(ErrorCode::Timeout, "the shadow's time limit passed");
        timeout_at(ends, result).await.map_err(late).flatten()
    }
}
