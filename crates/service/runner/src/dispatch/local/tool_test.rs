//! A test of a tool in this process, without a request: nothing is written. It has a slot, as a
//! call of [`TEST_TOOL`] has, and the caller's rights.

use std::sync::Arc;

use rcrt_breadcrumb::{Identity, Profiles, TEST_TOOL, ToolFailure, ToolRequest, ToolSource};
use rcrt_egress::Vault;
use rcrt_executors::{DiscardProgress, EffectGate, FindsNothing, ToolCall, TriggerChain, Unhosted};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::admission::LocalAdmission;
use crate::coordination::slots::Origin;
use crate::dispatch::calls::SLOT_WAIT;
use crate::execution::tool_access::Refusal;
use crate::on_behalf_of::on_behalf_of;
use crate::registry::tool_rights::ToolRights;

impl LocalAdmission {
    /// `None` if the queue must decide: the runner has no room or stops, or another one has the
    /// tool.
    pub(super) async fn test_tool(
        &self,
        identity: &Identity,
        tool_spec: &Map<String, Value>,
    ) -> Option<Result<Value, ToolFailure>> {
        let runner = &self.calls.call_runner;
        if runner.stop.is_cancelled() {
            return None;
        }
        let profiles = Profiles::of(identity.profile);
        let rights = ToolRights::new(profiles.clone(), None, Some(identity.agent_id), &[]);
        let tool = match runner.tool_access.find(TEST_TOOL, &rights).await {
            Ok(tool) => tool,
            Err(Refusal::Failed { failure, .. }) => return Some(Err(failure)),
            Err(Refusal::ServedByPeer) => return None,
        };
        // Code with this name would act, and its call must be recorded.
        if tool.source() != ToolSource::Native {
            return None;
        }
        let breadcrumbs = on_behalf_of(&runner.store, Some(identity.agent_id)).ok()?;
        let _slot = timeout(SLOT_WAIT, self.calls.slots.wait(TEST_TOOL, Origin::Queue)).await.ok()?;
        let id = Uuid::now_v7();
        let input = json!({"tool_spec": tool_spec});
        let request = ToolRequest {
            id,
            request_id: id.to_string(),
            tool: TEST_TOOL.to_owned(),
            input: input.clone(),
            agent_id: Some(identity.agent_id),
            ..ToolRequest::default()
        };
        let call = ToolCall {
            owner_id: identity.owner_id,
            tool_id: tool.id,
            tool_version: tool.version,
            definition: tool.definition.clone(),
            limits: tool.definition.limits,
            request,
            input,
            secrets: Arc::new(Vault::default()),
            breadcrumbs,
            chain: TriggerChain::default(),
            profiles,
            progress: Arc::new(DiscardProgress),
            deadline: None,
            child_calls: Arc::new(Unhosted),
            finder: Arc::new(FindsNothing),
            effect_gate: EffectGate::opened(),
            debug: None,
        };
        let cancelled = CancellationToken::new();
        // A caller that goes away ends the test.
        let _ends = cancelled.clone().drop_guard();
        Some(tool.executor.execute(call, cancelled).await.result)
    }
}
