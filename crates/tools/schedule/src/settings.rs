//! The operator's settings for the tools and the scheduler.

use std::time::Duration;

use chrono_tz::Tz;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The zone of tasks without one. Default: UTC.
    pub timezone: Tz,
    /// The most active tasks of a tenant. Default 100.
    pub max_active: usize,
    /// The shortest interval between two fires of a task, from 1 s to 60 s. Default 10 s.
    pub least_distance: Duration,
    /// How late a fire can be before its time counts as missed. Default 60 s.
    pub lateness: Duration,
    /// How long another scheduler's fire can be unfinished before this one finishes it. Default 10
    /// s.
    pub help_after: Duration,
    /// The pause before a retry after the store failed. Default 5 s.
    pub retry_after: Duration,
    /// How often all schedules are read, in addition to events. Default 5 min.
    pub look_every: Duration,
    /// How long an ended task (done or cancelled) can be listed. Default 7 days.
    pub keep_ended: Duration,
    /// How long a `schedule.fired.v1` is kept. Default 30 days.
    pub keep_fired: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            timezone: Tz::UTC,
            max_active: 100,
            least_distance: Duration::from_secs(10),
            lateness: Duration::from_mins(1),
            help_after: Duration::from_secs(10),
            retry_after: Duration::from_secs(5),
            look_every: Duration::from_mins(5),
            keep_ended: DAY * 7,
            keep_fired: DAY * 30,
        }
    }
}
