//! What a call passes on to the records that it writes. The trigger chain and profiles that apply
//! to the call also apply to the calls that it requests or triggers.

use opentelemetry::Context;
use rcrt_breadcrumb::{NewBreadcrumb, OpError, Profiles};
use rcrt_egress::trace;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{ToolCall, TriggerChain};

/// The marks of the call that writes.
pub(crate) struct Provenance {
    chain: TriggerChain,
    profiles: Profiles,
    session: Option<String>,
    deadline: Option<Instant>,
    /// The call's request.
    request: Uuid,
}

impl Provenance {
    pub fn of(call: &ToolCall) -> Self {
        Self {
            chain: call.chain.clone(),
            profiles: call.profiles.clone(),
            session: call.request.session.clone(),
            deadline: call.deadline,
            request: call.request.id,
        }
    }

    /// Marks one version of a record. `before` are the tags of the previous version, empty if there
    /// is none.
    pub fn mark(&self, tags: &mut Vec<String>, before: &[String], version: i64) {
        self.chain.mark(tags, version);
        self.close(tags, before);
    }

    /// Whether records of this call get any marks.
    pub fn marks(&self) -> bool {
        !self.chain.is_empty() || self.profiles.iter().next().is_some()
    }

    /// Adds the call's profiles to those that the record already had. A bound call can add
    /// restrictions and cannot remove any.
    fn close(&self, tags: &mut Vec<String>, before: &[String]) {
        if self.profiles.iter().next().is_none() {
            return;
        }
        let mut profiles = self.profiles.clone();
        profiles.add_tags(before);
        for tag in profiles.tags() {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
    }

    /// Marks a request. The error says why the call cannot write one. The tool can restrict its
    /// request further: more profiles, an earlier deadline, another session. It cannot widen its
    /// rights, or set the trace or the parent, or say that the call waits for it.
    pub fn mark_request(&self, request: &mut NewBreadcrumb) -> Result<(), OpError> {
        self.chain.mark_request(&mut request.tags).map_err(|too_deep| OpError::new("ResourceExhausted", too_deep))?;
        self.close(&mut request.tags, &[]);
        let context = &mut request.context;
        // A run outside of a runner has no request.
        if !self.request.is_nil() {
            context.insert("parent".into(), self.request.to_string().into());
        }
        context.remove("awaited");
        if let Some(session) = &self.session
            && context.get("session").is_none_or(Value::is_null)
        {
            context.insert("session".into(), session.as_str().into());
        }
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now()).as_millis().max(1) as u64;
            match context.get("deadline_ms") {
                None | Some(Value::Null) => {
                    context.insert("deadline_ms".into(), left.into());
                }
                Some(own) if own.as_u64().is_some_and(|own| own > left) => {
                    context.insert("deadline_ms".into(), left.into());
                }
                Some(_) => {}
            }
        }
        match trace::traceparent(&Context::current()) {
            Some(traceparent) => context.insert("traceparent".into(), traceparent.to_string().into()),
            None => context.remove("traceparent"),
        };
        Ok(())
    }
}
