//! Whether a runner can claim calls, for its readiness probe.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A claim without a response for this long counts as failed.
const LONGEST_CLAIM: Duration = Duration::from_secs(15);

/// What the newest claim of a runner says about its readiness.
#[derive(Debug)]
pub struct ClaimHealth {
    state: Mutex<ClaimState>,
}

#[derive(Debug)]
struct ClaimState {
    /// Why no call can be claimed.
    problem: Option<String>,
    /// When the claim in progress was sent.
    asked_at: Option<Instant>,
}

impl Default for ClaimHealth {
    fn default() -> Self {
        let problem = Some("the runner has not claimed calls yet".to_owned());
        Self { state: Mutex::new(ClaimState { problem, asked_at: None }) }
    }
}

impl ClaimHealth {
    /// Returns why the runner cannot claim calls now. A runner whose slots are all in use can.
    pub fn check(&self) -> Result<(), String> {
        let state = self.state.lock();
        match (&state.problem, state.asked_at) {
            (Some(problem), _) => Err(problem.clone()),
            (None, Some(asked_at)) if asked_at.elapsed() > LONGEST_CLAIM => {
                Err(format!("a claim has had no response for {} s", asked_at.elapsed().as_secs()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn asked(&self) {
        self.state.lock().asked_at = Some(Instant::now());
    }

    pub(crate) fn answered(&self, problem: Option<String>) {
        let is_ready = problem.is_none();
        let was = std::mem::replace(&mut *self.state.lock(), ClaimState { problem, asked_at: None });
        if is_ready != was.problem.is_none() {
            show_ready(is_ready);
        }
    }
}

/// Shows it in the metrics of this process.
pub(crate) fn show_ready(is_ready: bool) {
    metrics::gauge!("rcrt_runner_ready").set(f64::from(u8::from(is_ready)));
}
