//! Decides when to claim again. A runner under load takes several calls with one claim. An idle
//! runner takes the first call at once.

use std::time::Duration;

use rcrt_breadcrumb::ClaimRequest;
use tokio::time::Instant;

/// The longest pause, however slow the store is.
const LONGEST: Duration = Duration::from_millis(20);

pub(crate) struct ClaimPacer {
    /// The number of free slots at which a claim is sent at once while calls are known to wait.
    worthwhile: u32,
    not_before: Instant,
    /// The last claim, if it returned fewer calls than requested.
    unfilled: Option<ClaimRequest>,
}

impl ClaimPacer {
    pub fn new(max_calls: usize) -> Self {
        let worthwhile = (max_calls / 4).clamp(1, 25) as u32;
        Self { worthwhile, not_before: Instant::now(), unfilled: None }
    }

    /// The time before which this claim should not be sent; `None` to send it now.
    pub fn pause(&self, claim: &ClaimRequest) -> Option<Instant> {
        let is_same =
            |last: &ClaimRequest| last.except_tools == claim.except_tools && last.awaited_only == claim.awaited_only;
        let is_new = claim.limit >= self.worthwhile && !self.unfilled.as_ref().is_some_and(is_same);
        (!is_new && Instant::now() < self.not_before).then_some(self.not_before)
    }

    /// Records that the claim returned this many calls, and sets the pause. Claiming takes at most
    /// a third of the time if more calls wait for slots: the pause gathers them. It takes at most a
    /// fifth if only tools without a free slot can have waiting calls.
    pub fn answered(&mut self, claim: &ClaimRequest, count: usize, took: Duration) {
        let is_full = count >= claim.limit as usize;
        let pause = if is_full {
            took * 2
        } else if claim.is_partial() {
            took * 4
        } else {
            Duration::ZERO
        };
        self.unfilled = (!is_full).then(|| claim.clone());
        self.not_before = Instant::now() + pause.min(LONGEST);
    }
}
