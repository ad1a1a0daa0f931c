//! The limits on a call's time, CPU and memory, watched from outside its worker.

use std::pin::Pin;
use std::time::Duration;

use rcrt_breadcrumb::Limits;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::ProcessUsage;
use crate::limits::{Meter, MeterCheck, ProcessLimits};

/// How long the worker may take to create an isolate, before the tool's own time begins.
const START: Duration = Duration::from_secs(30);

/// The limit that a call reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    Deadline,
    CpuBudget,
    Memory,
}

pub struct CallLimits<'a> {
    bounds: &'a ProcessLimits,
    limits: &'a Limits,
    deadline: Pin<Box<Sleep>>,
    meter: Option<Meter<'a>>,
    /// Processor time at the start, on the clock of the process.
    cpu_at_start: Option<Duration>,
    /// When the meter is checked next.
    check: Pin<Box<Sleep>>,
}

impl<'a> CallLimits<'a> {
    /// For a call whose isolate is not created yet.
    pub fn new(bounds: &'a ProcessLimits, limits: &'a Limits) -> Self {
        let now = Instant::now();
        let (deadline, check) = (Box::pin(sleep_until(now + START)), Box::pin(sleep_until(now)));
        Self { bounds, limits, deadline, meter: None, cpu_at_start: None, check }
    }

    /// The tool's own time begins.
    pub fn start(&mut self) {
        let now = Instant::now();
        self.deadline.as_mut().reset(now + self.limits.timeout());
        self.meter = self.bounds.begin(self.limits);
        if let Some(meter) = &self.meter {
            self.cpu_at_start = Some(meter.from());
            self.check.as_mut().reset(now + meter.first_look());
        }
    }

    /// Returns when the call has reached a limit.
    pub async fn exceeded(&mut self) -> Exceeded {
        tokio::select! {
            biased;
            () = &mut self.deadline => Exceeded::Deadline,
            limit = spent(&mut self.meter, self.check.as_mut()) => limit,
        }
    }

    /// Stops limiting the CPU: the call needs it to end.
    pub fn lift_cpu_limit(&mut self) {
        self.meter = None;
        self.bounds.lift_cpu_limit();
    }

    /// What the call used so far.
    pub fn usage(&self) -> ProcessUsage {
        let cpu = self.cpu_at_start.and_then(|from| Some(self.bounds.cpu_time()?.saturating_sub(from)));
        ProcessUsage { cpu, peak_memory: self.bounds.peak_memory(), omitted_lines: 0 }
    }

    pub fn kill(&self) {
        self.bounds.kill();
    }
}

/// Returns when the call's CPU time or memory is used up.
async fn spent(meter: &mut Option<Meter<'_>>, mut check: Pin<&mut Sleep>) -> Exceeded {
    let Some(meter) = meter else { return std::future::pending().await };
    loop {
        check.as_mut().await;
        match meter.check() {
            MeterCheck::CpuExhausted => return Exceeded::CpuBudget,
            MeterCheck::MemoryExceeded => return Exceeded::Memory,
            MeterCheck::CheckAgain(wait) => check.as_mut().reset(Instant::now() + wait),
        }
    }
}
