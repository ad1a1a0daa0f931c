//! The clocks of `performance`. Their resolution is one millisecond, so that no tool can time other
//! tenants, unless the tool has the permission for finer ones.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use deno_core::{OpState, op2};

pub struct Clock {
    begun: Instant,
    is_fine: Cell<bool>,
    /// Set if the clock stands still at this time, since the Unix epoch.
    stopped_at: Cell<Option<Duration>>,
}

impl Clock {
    pub fn new() -> Self {
        Self { begun: Instant::now(), is_fine: Cell::new(false), stopped_at: Cell::new(None) }
    }

    pub fn set_fine(&self, is_fine: bool) {
        self.is_fine.set(is_fine);
    }

    /// Stops the clock, for a run that must give the same result each time.
    pub fn stop_at(&self, time: Duration) {
        self.stopped_at.set(Some(time));
    }

    fn elapsed(&self) -> Duration {
        if self.stopped_at.get().is_some() { Duration::ZERO } else { self.begun.elapsed() }
    }

    fn write(&self, time: Duration, out: &mut [u8]) {
        let nanoseconds = if self.is_fine.get() { time.subsec_nanos() } else { time.subsec_millis() * 1_000_000 };
        if let Some(out) = out.first_chunk_mut::<8>() {
            out[..4].copy_from_slice(&(time.as_secs() as u32).to_ne_bytes());
            out[4..].copy_from_slice(&nanoseconds.to_ne_bytes());
        }
    }
}

/// Time since the isolate was created: seconds and nanoseconds, two `u32` in native byte order.
#[op2(fast)]
pub fn op_sandbox_now(state: &mut OpState, #[buffer] out: &mut [u8]) {
    let clock = state.borrow::<Clock>();
    clock.write(clock.elapsed(), out);
}

/// The start of the clock above, since the Unix epoch, in the same form.
#[op2(fast)]
pub fn op_sandbox_time_origin(state: &mut OpState, #[buffer] out: &mut [u8]) {
    let clock = state.borrow::<Clock>();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    clock.write(clock.stopped_at.get().unwrap_or(now.saturating_sub(clock.begun.elapsed())), out);
}
