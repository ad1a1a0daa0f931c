//! A speculative call: between the making and the commit of its request it gets its slot, computes
//! if its tool supports that, and provides its response if the writer waits for it.

use std::pin::Pin;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{NewBreadcrumb, UncommittedCall};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use crate::dispatch::calls::{Calls, SLOT_WAIT};
use crate::dispatch::leases::LeaseGuard;
use crate::dispatch::local_dispatch::WaitingForSlot;
use crate::dispatch::slots::Slot;
use crate::execution::call::{AcceptedCall, StartState, UncommittedResponse};
use crate::execution::speculative_run::Prepared;
use crate::registry::tool::Tool;
use crate::registry::tool_access::Refusal;

pub(crate) struct SpeculativeCall {
    pub uncommitted: UncommittedCall,
    pub tool: Arc<Tool>,
    /// With one it begins its life running, without one claimed.
    pub slot: Option<Slot>,
    /// Until it has one.
    pub waiting: Option<WaitingForSlot>,
    pub asked: Instant,
    /// Its request is kept back for what comes of it.
    pub answer: Option<oneshot::Sender<NewBreadcrumb>>,
}

/// The outcome of its request, as the call learns it.
pub(crate) enum CommitNotice {
    Claimed(DateTime<Utc>, LeaseGuard),
    /// With its response.
    Answered,
}

impl SpeculativeCall {
    /// `None` if nothing is left to do: it was answered, or its request was not written.
    pub async fn until_committed(
        self,
        calls: &Calls,
        mut written: oneshot::Receiver<CommitNotice>,
    ) -> Option<(AcceptedCall, Option<WaitingForSlot>)> {
        let Self { mut uncommitted, tool, mut slot, mut waiting, asked, mut answer } = self;
        let progress = match slot {
            Some(_) => StartState::Begun { max_attempts: tool.definition.limits.max_attempts },
            None => StartState::Claimed,
        };
        let (mut speculative, mut response): (_, Option<UncommittedResponse>) = (None, None);
        let (mut is_to_begin, mut prepared) = (true, asked.elapsed());
        let given_up = sleep(SLOT_WAIT);
        tokio::pin!(given_up);
        let (at, held) = loop {
            if is_to_begin && slot.is_some() {
                (is_to_begin, waiting) = (false, None);
                let began = Instant::now();
                speculative = calls.call_runner.prepare_speculatively(&mut uncommitted, tool.clone()).await;
                prepared = began.elapsed();
                if matches!(speculative, Some(Err(_))) {
                    slot = None;
                }
            }
            if !is_to_begin && !is_computing(speculative.as_ref()) {
                // There is none, or it was said already.
                answer = None;
            }
            tokio::select! {
                biased;
                said = &mut written => match said {
                    Ok(CommitNotice::Claimed(at, held)) => break (at, held),
                    Ok(CommitNotice::Answered) => {
                        if let Some(response) = response {
                            response.was_written();
                        }
                        return None;
                    }
                    Err(_) => {
                        discard_uncommitted(speculative.as_ref());
                        return None;
                    }
                },
                () = calls.abandon_uncommitted.cancelled() => {
                    discard_uncommitted(speculative.as_ref());
                    return None;
                }
                // Others need the slot while this one waits for the disk; and it may never be written.
                () = until_given_up(&calls.call_runner.stop, given_up.as_mut()), if is_to_begin || slot.is_some() => {
                    (is_to_begin, slot) = (false, None);
                    if let Some(Ok(prepared)) = &mut speculative
                        && !prepared.has_ended()
                    {
                        prepared.forget_run();
                    }
                }
                found = calls.slots.wait(tool.name()), if is_to_begin => slot = Some(found),
                ended = compute(&mut speculative) => if ended {
                    // However long the disk takes, it needs no worker any more.
                    slot = None;
                    if let (Some(answer), Some(Ok(ready))) = (answer.take(), &speculative) {
                        response = calls.call_runner.uncommitted_response(&uncommitted, ready, prepared);
                        response = response.filter(|response| answer.send(response.response.clone()).is_ok());
                    }
                }
            }
        };
        Some((AcceptedCall { claim: uncommitted.claim(at), held, slot, progress, speculative }, waiting))
    }
}

fn is_computing(speculative: Option<&Result<Prepared, Refusal>>) -> bool {
    matches!(speculative, Some(Ok(prepared)) if prepared.is_computing())
}

/// What is still running ends with it.
fn discard_uncommitted(speculative: Option<&Result<Prepared, Refusal>>) {
    if let Some(Ok(prepared)) = speculative
        && prepared.has_ended()
    {
        prepared.tool.invalidate_kept_isolate();
    }
}

async fn until_given_up(stop: &CancellationToken, given_up: Pin<&mut Sleep>) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = given_up => {}
    }
}

/// Whether it has ended; never returns if nothing computes.
async fn compute(speculative: &mut Option<Result<Prepared, Refusal>>) -> bool {
    match speculative {
        Some(Ok(prepared)) if prepared.is_computing() => {
            prepared.compute().await;
            prepared.has_ended()
        }
        _ => std::future::pending().await,
    }
}
