//! A runner that stands by in the process that writes requests takes calls as they are written, past the queue.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::{Claim, Profiles};

/// A runner of one tenant, as the store asks it about each new request. It answers from memory and at once.
pub trait Standby: Send + Sync + 'static {
    /// Whether it begins a call of this tool, asked for by an agent of these profiles, as soon as its request is written.
    /// `None` leaves the call to the queue.
    fn offer(&self, tool: &str, profiles: &Profiles) -> Option<Offer>;
}

/// The runner's word, until it is dropped: a place is kept for the call.
pub struct Offer {
    pub runner_id: Uuid,
    pub lease_ms: u64,
    /// The tool's. The call begins its life running, with the first of them.
    pub max_attempts: u32,
    begin: Box<dyn FnOnce(Claim) + Send + Sync>,
}

impl Offer {
    /// `begin` is called once, without waiting for anything, when the request is written; and not at all when it is not.
    pub fn new(
        runner_id: Uuid,
        lease_ms: u64,
        max_attempts: u32,
        begin: impl FnOnce(Claim) + Send + Sync + 'static,
    ) -> Self {
        Self { runner_id, lease_ms, max_attempts, begin: Box::new(begin) }
    }

    /// The call is written, and running under this claim's lease.
    pub fn begin(self, claim: Claim) {
        (self.begin)(claim);
    }
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer").field("runner_id", &self.runner_id).finish_non_exhaustive()
    }
}

/// Ends a standby when it is dropped: from then on no call is offered to it.
#[must_use]
pub struct StandingBy(Option<Box<dyn FnOnce() + Send + Sync>>);

impl StandingBy {
    pub fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(end)))
    }

    /// Where nobody asks.
    pub fn nowhere(_standby: Arc<dyn Standby>) -> Self {
        Self(None)
    }
}

impl Drop for StandingBy {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl fmt::Debug for StandingBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StandingBy").field(&self.0.is_some()).finish()
    }
}
