//! The progress that a call reports, limited on this side as well.

use std::time::Instant;

use crate::HostOps;
use crate::protocol::{MAX_PROGRESS_BYTES, PROGRESS_INTERVAL, ProgressUpdate, decode};

/// Reports beyond what the interval allows: the clocks of the two processes are not read at the
/// same moment.
const SLACK: u32 = 20;
/// The largest report, in bytes of JSON, with every character escaped.
const MAX_PAYLOAD_BYTES: usize = 6 * MAX_PROGRESS_BYTES + 200;

pub struct ProgressReceiver {
    begun: Instant,
    reports: u32,
}

impl ProgressReceiver {
    /// Call it before the worker gets the call, so that the worker's clock starts later.
    pub fn begin() -> Self {
        Self { begun: Instant::now(), reports: 0 }
    }

    /// Forwards a report. An honest worker enforces the limits itself, so exceeding them is a
    /// breach.
    pub fn take(&mut self, payload: &[u8], listener: &dyn HostOps) -> Result<(), String> {
        self.reports = self.reports.saturating_add(1);
        let allowed = self.begun.elapsed().as_millis() / PROGRESS_INTERVAL.as_millis() + u128::from(SLACK);
        if u128::from(self.reports) > allowed {
            return Err("it reports progress more often than a call can".into());
        }
        let report = if payload.len() <= MAX_PAYLOAD_BYTES { decode::<ProgressUpdate>(payload).ok() } else { None };
        let report = report.ok_or("a progress report that cannot be read")?;
        if report.message.len() > MAX_PROGRESS_BYTES || report.fraction.is_some_and(|part| !(0.0..=1.0).contains(&part))
        {
            return Err("an invalid progress report".into());
        }
        listener.progress(report.fraction, &report.message);
        Ok(())
    }
}
