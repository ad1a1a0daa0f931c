//! When to claim again: a runner under load takes several calls with one claim, and an idle runner
//! takes the first call at once.

use std::time::Duration;

use breadcrumb::ClaimRequest;
use tokio::time::Instant;

/// The longest pause, however slow the store is.
const LONGEST: Duration = Duration::from_millis(20);

pub(crate) struct ClaimPacer {
    /// Slots that are worth a question at once, where it is known that calls wait.
    worthwhile: u32,
    not_before: Instant,
    /// What the last question left out, where it found less than it asked for.
    left_out: Option<Vec<String>>,
}

impl ClaimPacer {
    pub fn new(max_calls: usize) -> Self {
        let worthwhile = (max_calls / 4).clamp(1, 25) as u32;
        Self { worthwhile, not_before: Instant::now(), left_out: None }
    }

    /// Until when to wait with this question; `None` to ask now.
    pub fn pause(&self, claim: &ClaimRequest) -> Option<Instant> {
        let is_new = claim.limit >= self.worthwhile && self.left_out.as_ref() != Some(&claim.except_tools);
        (!is_new && Instant::now() < self.not_before).then_some(self.not_before)
    }

    /// The claim returned this many calls. Claiming then takes at most a third or a fifth of the
    /// time: either more calls wait for slots, and a pause gathers them; or the waiting calls are
    /// of tools without a free slot, and the next check comes later.
    pub fn answered(&mut self, claim: &ClaimRequest, count: usize, took: Duration) {
        let is_full = count >= claim.limit as usize;
        let pause = if is_full {
            took * 2
        } else if claim.except_tools.is_empty() {
            Duration::ZERO
        } else {
            took * 4
        };
        self.left_out = (!is_full).then(|| claim.except_tools.clone());
        self.not_before = Instant::now() + pause.min(LONGEST);
    }
}
