//! Local dispatch: a runner in the process that writes requests takes calls while they are written,
//! without the queue.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Breadcrumb, Claim, Lease, NewBreadcrumb, Profiles};

/// A runner of one tenant, as the store asks it about each new request. It answers from memory and at once.
pub trait LocalRunner: Send + Sync + 'static {
    /// Whether it takes on a call of this tool, asked for by an agent of these profiles, as its request is written. `None`
    /// leaves the call to the queue. `uncommitted` gives the call itself, to who takes it on.
    fn reserve(
        &self,
        tool: &str,
        profiles: &Profiles,
        uncommitted: &dyn Fn() -> UncommittedCall,
    ) -> Option<Reservation>;

    /// The same, before the request waits for its turn to be written: it is kept back until the answer is there, or it is
    /// known that it does not come soon. The two are written together then, whole or not at all.
    fn reserve_speculative(
        &self,
        _tool: &str,
        _profiles: &Profiles,
        _uncommitted: &dyn Fn() -> UncommittedCall,
    ) -> Option<(Reservation, SpeculativeResponse)> {
        None
    }
}

/// A call whose request is about to be written. It may still come to nothing.
#[derive(Debug)]
pub struct UncommittedCall {
    /// As it will be, but for the moment.
    pub request: Breadcrumb,
    pub profiles: Profiles,
    /// Milliseconds until the request's deadline, counted from its writing.
    pub time_left_ms: Option<u64>,
}

impl UncommittedCall {
    /// Now that it is written, at this moment: the claim of the runner that took it on.
    pub fn claim(mut self, at: DateTime<Utc>) -> Claim {
        (self.request.created_at, self.request.updated_at) = (at, at);
        Claim {
            lease: Lease::claimed_at_write(self.request.id, at),
            attempt: 1,
            request: self.request,
            profiles: self.profiles,
            time_left_ms: self.time_left_ms,
            queued_at: at,
            ready_at: Some(at),
        }
    }
}

/// How a call began its life, as its request was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// This runner's, under [`Lease::claimed_at_write`] of this moment.
    Claimed(DateTime<Utc>),
    /// Finished, with the answer that came early.
    Answered,
}

/// The answer to a call whose request is not written yet; `None`, and soon in any case, where it takes its time. It is a
/// response that was checked.
pub type SpeculativeResponse = Pin<Box<dyn Future<Output = Option<NewBreadcrumb>> + Send>>;

/// The runner's word, until it is dropped: a place is kept for the call.
pub struct Reservation {
    pub runner_id: Uuid,
    pub lease_ms: u64,
    /// The tool's, where the call begins its life running, with the first of them. `None`: it begins claimed, and is to be
    /// started.
    pub max_attempts: Option<u32>,
    on_confirm: Box<dyn FnOnce(Admission) + Send + Sync>,
}

impl Reservation {
    /// `on_confirm` is called once, without waiting for anything, when the request is written; and not at all when it is not.
    pub fn new(
        runner_id: Uuid,
        lease_ms: u64,
        max_attempts: Option<u32>,
        on_confirm: Box<dyn FnOnce(Admission) + Send + Sync>,
    ) -> Self {
        Self { runner_id, lease_ms, max_attempts, on_confirm }
    }

    /// The request is written.
    pub fn confirm(self, admission: Admission) {
        (self.on_confirm)(admission);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("runner_id", &self.runner_id).finish_non_exhaustive()
    }
}

/// Unregisters a runner when it is dropped: from then on it is asked about no call.
#[must_use]
pub struct LocalRunnerGuard(Option<Box<dyn FnOnce() + Send + Sync>>);

impl LocalRunnerGuard {
    pub fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(end)))
    }

    /// Where nobody asks.
    pub fn unregistered(_runner: Arc<dyn LocalRunner>) -> Self {
        Self(None)
    }
}

impl Drop for LocalRunnerGuard {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl fmt::Debug for LocalRunnerGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalRunnerGuard").field(&self.0.is_some()).finish()
    }
}
