//! What a call needs before it runs: its tool, its validated input and its secrets. A call can be
//! prepared, and begin, before its request is written.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{Breadcrumb, Claim, ErrorCode, NewBreadcrumb, ResponseStatus, ToolFailure, ToolRequest};
use rcrt_egress::Vault;
use rcrt_executors::{EffectGate, ToolCall, TriggerChain};
use serde_json::Value;
use tokio::time::Instant;

use crate::execution::call::{AcceptedCall, CallRunner, take_input};
use crate::execution::deadline::Deadline;
use crate::execution::open_children::OpenChildren;
use crate::execution::progress_writer::{self, ProgressWriter};
use crate::execution::request_event::request_event;
use crate::execution::response_writer::{Attempt, inherited};
use crate::execution::schema_check::checked_input;
use crate::execution::secrets;
use crate::execution::speculative_run::PreparedRun;
use crate::execution::stages::Stages;
use crate::execution::telemetry::{self, Invocation};
use crate::execution::tool_access::Refusal;
use crate::execution::tool_finder::CallersTools;
use crate::on_behalf_of::on_behalf_of;
use crate::registry::tool::Tool;
use crate::registry::tool_rights::ToolRights;

/// A validated input, and what else the call needs.
struct Checked {
    input: Value,
    secrets: Arc<Vault>,
    /// The part of the call's `timeout_ms` that the checks used.
    took: Duration,
}

/// A call whose request is not written yet.
pub(crate) struct UncommittedCall {
    /// As it will be, but for the time and the checksum.
    pub request: Breadcrumb,
    pub rights: ToolRights,
    /// Milliseconds until the request's deadline, counted from its writing.
    pub time_left_ms: Option<u64>,
}

/// The response of a call that has computed before its request was written.
pub(crate) struct UncommittedResponse {
    pub record: NewBreadcrumb,
    pub computed: ComputedCall,
}

/// A call that has computed before its request was written.
pub(crate) struct ComputedCall {
    tool: Arc<Tool>,
    took: Duration,
    invocation: Invocation,
}

impl ComputedCall {
    /// Its response was written together with its request.
    pub fn was_written(self) {
        telemetry::answered(Some(self.tool.name()), ResponseStatus::Success, self.took);
        drop(self.invocation);
    }
}

impl CallRunner {
    /// Discards what was prepared before the request was written, if the tool has changed since.
    pub fn discard_if_changed(&self, taken: &mut AcceptedCall) {
        let AcceptedCall { claim, speculative, .. } = taken;
        let rights = ToolRights::from(&*claim);
        let has_changed = |ready: &PreparedRun| !self.is_unchanged(&ready.tool, &rights);
        speculative.take_if(|speculative| speculative.as_ref().is_ok_and(has_changed));
    }

    /// Everything before the start. A failure becomes the response.
    pub async fn prepare(&self, claim: &Claim, request: &ToolRequest, input: Value) -> Result<PreparedRun, Refusal> {
        let rights = ToolRights::from(claim);
        let tool = match &request.pin {
            Some(pin) => self.tool_access.find_version(&request.tool, pin, &rights).await?,
            None => self.tool_access.find(&request.tool, &rights).await?,
        };
        self.ready(tool, &claim.request, &rights, request.clone(), input).await
    }

    /// Prepares and begins a call of this tool before its request is written. `None` if that must
    /// wait for the write.
    pub async fn prepare_speculatively(
        &self,
        uncommitted: &mut UncommittedCall,
        tool: Arc<Tool>,
    ) -> Option<Result<PreparedRun, Refusal>> {
        // A long check waits in a queue. `run` does such checks, since it can react to a deadline,
        // a cancellation and a stop meanwhile.
        let is_quick = |input| tool.input.is_quick(input);
        if !tool.may_speculate() || !uncommitted.request.context.get("input").is_none_or(is_quick) {
            return None;
        }
        let input = take_input(&mut uncommitted.request);
        let Ok(request) = ToolRequest::from_breadcrumb(&uncommitted.request) else {
            return None;
        };
        let mut prepared = self.ready(tool, &uncommitted.request, &uncommitted.rights, request, input).await;
        if let Ok(prepared) = &mut prepared {
            let deadline = Deadline::after(uncommitted.time_left_ms, prepared.request());
            prepared.begin_speculatively(deadline.as_ref());
        }
        Some(prepared)
    }

    /// The response of a call that has computed before its request was written, if nothing else is
    /// left to do. `took`: the duration of the preparation.
    pub fn uncommitted_response(
        &self,
        uncommitted: &UncommittedCall,
        prepared: &PreparedRun,
        took: Duration,
    ) -> Option<UncommittedResponse> {
        let (tool, request) = (&prepared.tool, prepared.request());
        let is_whole = prepared.has_small_result() && prepared.progress_writer.is_flushed();
        if !is_whole || !self.options.takes_small_results(request) || !self.is_unchanged(tool, &uncommitted.rights) {
            return None;
        }
        let (output, ran) = prepared.ended()?;
        let mut stages = Stages::uncommitted();
        stages.loaded(took);
        let invocation = Invocation::begin(uncommitted.request.owner_id, 1, request, &stages);
        invocation.runs(tool);
        invocation.ran(ran);
        stages.ran(ran);
        let (record, queued_at) = (&uncommitted.request, uncommitted.request.created_at);
        let attempt = Attempt { number: 1, record, request, queued_at, stages, invocation };
        let result = output.result.as_ref().ok()?.clone();
        let record = self.responses.speculative_response(&attempt, tool, result, ran, output.metadata.clone())?;
        let computed = ComputedCall { tool: tool.clone(), took: ran, invocation: attempt.invocation };
        Some(UncommittedResponse { record, computed })
    }

    fn is_unchanged(&self, tool: &Arc<Tool>, rights: &ToolRights) -> bool {
        self.tool_access.ready_now(tool.name(), rights).is_some_and(|now| Arc::ptr_eq(&now, tool))
    }

    async fn ready(
        &self,
        tool: Arc<Tool>,
        record: &Breadcrumb,
        rights: &ToolRights,
        request: ToolRequest,
        input: Value,
    ) -> Result<PreparedRun, Refusal> {
        let mut tool = tool;
        let checked = self.checked(&mut tool, rights, &request, input).await;
        let call = |checked| self.call(&tool, record, rights, request, checked);
        match checked.and_then(call) {
            Ok((call, progress_writer, children)) => Ok(PreparedRun::new(tool, call, progress_writer, children)),
            Err(failure) => Err(Refusal::Failed { tool: Some(tool.candidate.clone()), failure }),
        }
    }

    /// The validated input and the tool's secrets. If a secret is missing, a tool that this one
    /// replaced may serve the call.
    async fn checked(
        &self,
        tool: &mut Arc<Tool>,
        rights: &ToolRights,
        request: &ToolRequest,
        mut input: Value,
    ) -> Result<Checked, ToolFailure> {
        let mut took = Duration::ZERO;
        loop {
            let began = Instant::now();
            let ends = began + tool.definition.limits.timeout().saturating_sub(took);
            let checked = checked_input(tool, input, ends).await?;
            took += began.elapsed();
            match secrets::granted_secrets(&*self.store, tool, request).await {
                Ok(secrets) => return Ok(Checked { input: checked, secrets, took }),
                // No other tool is the version that the request names.
                Err(failure) if failure.code == ErrorCode::PermissionDenied && request.pin.is_none() => {
                    self.tool_access.readiness.check_soon();
                    let Some(other) = self.tool_access.replaced_tool(tool, rights).await else { return Err(failure) };
                    (*tool, input) = (other, checked);
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    fn call(
        &self,
        tool: &Tool,
        record: &Breadcrumb,
        rights: &ToolRights,
        mut request: ToolRequest,
        Checked { input, secrets, took }: Checked,
    ) -> Result<(ToolCall, ProgressWriter, Arc<OpenChildren>), ToolFailure> {
        let mut limits = tool.definition.limits;
        limits.timeout_ms = limits.timeout_ms.saturating_sub(took.as_millis() as u64).max(1);
        let chain = TriggerChain::of_call(record.id, &record.tags);
        // A tool reads only what the agent that made the request can read.
        let own = on_behalf_of(&self.store, record.created_by).map_err(|error| {
            ToolFailure::new(
                ErrorCode::ExecutionFailed,
                format!("the agent that made the request cannot be used: {error}"),
            )
        })?;
        if request.trigger_event.is_none() && tool.definition.is_code() {
            request.trigger_event = request_event(record, &input);
        }
        let visibility = inherited(record);
        let seen = (visibility, record.sensitivity);
        let (progress, progress_writer) =
            progress_writer::channel(own.clone(), &request, seen, chain.clone(), secrets.clone());
        let children = OpenChildren::new(own.clone(), self.response_hints.clone(), seen);
        let finder = Arc::new(CallersTools {
            directory: self.directory.clone(),
            owner_id: record.owner_id,
            rights: rights.clone(),
            seen: own.clone(),
        });
        let call = ToolCall {
            owner_id: record.owner_id,
            tool_id: tool.id,
            tool_version: tool.version,
            definition: tool.definition.clone(),
            limits,
            request,
            input,
            secrets,
            breadcrumbs: own,
            chain,
            profiles: rights.profiles.clone(),
            progress,
            deadline: None,
            child_calls: children.clone(),
            finder,
            effect_gate: EffectGate::opened(),
            debug: None,
        };
        Ok((call, progress_writer, children))
    }
}
