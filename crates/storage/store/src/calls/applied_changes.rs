//! How far the runners that report to this process have applied the changes of tools. A write that
//! waits for them learns it here before their reports are in the table.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rcrt_breadcrumb::RunnerReport;
use tokio::sync::Notify;
use uuid::Uuid;

#[derive(Default)]
pub(crate) struct AppliedChanges {
    /// By tenant and runner.
    applied: Mutex<HashMap<(Uuid, Uuid), Applied>>,
    reports: Notify,
}

struct Applied {
    number: i64,
    live_until: Instant,
}

/// A live runner that has not applied a change, by its report in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BehindRunner {
    pub runner_id: Uuid,
    /// The event of the change.
    pub change: i64,
}

impl AppliedChanges {
    pub fn reported(&self, owner_id: Uuid, report: &RunnerReport) {
        let (now, key) = (Instant::now(), (owner_id, report.runner_id));
        let mut applied = self.applied.lock();
        applied.retain(|_, one| one.live_until > now);
        if report.lease_ms == 0 {
            applied.remove(&key);
        } else {
            // Reports can overtake each other.
            let number = applied.get(&key).map_or(0, |one| one.number).max(report.applied.0);
            let live_until = now + Duration::from_millis(report.lease_ms);
            applied.insert(key, Applied { number, live_until });
        }
        drop(applied);
        self.reports.notify_waiters();
    }

    /// Removes those that have reported meanwhile that they applied the change.
    pub fn remove_caught_up(&self, owner_id: Uuid, behind: &mut Vec<BehindRunner>) {
        let applied = self.applied.lock();
        let has_applied = |one: &BehindRunner| {
            applied.get(&(owner_id, one.runner_id)).is_some_and(|applied| applied.number >= one.change)
        };
        behind.retain(|one| !has_applied(one));
    }

    /// Returns when all of them have reported here that they applied the change.
    pub async fn until_applied(&self, owner_id: Uuid, mut behind: Vec<BehindRunner>) {
        loop {
            let reported = self.reports.notified();
            tokio::pin!(reported);
            reported.as_mut().enable();
            self.remove_caught_up(owner_id, &mut behind);
            if behind.is_empty() {
                return;
            }
            reported.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use rcrt_breadcrumb::EventNumber;
    use rcrt_conformance::runners::report_of;

    use super::*;

    const OWNER: Uuid = Uuid::from_u128(1);
    const FIRST: Uuid = Uuid::from_u128(2);
    const SECOND: Uuid = Uuid::from_u128(3);

    fn report(runner_id: Uuid, applied: i64, lease_ms: u64) -> RunnerReport {
        RunnerReport { applied: EventNumber(applied), lease_ms, ..report_of(runner_id) }
    }

    fn behind(runner_id: Uuid) -> BehindRunner {
        BehindRunner { runner_id, change: 10 }
    }

    fn left(applied: &AppliedChanges, owner_id: Uuid) -> Vec<Uuid> {
        let mut left = vec![behind(FIRST), behind(SECOND)];
        applied.remove_caught_up(owner_id, &mut left);
        left.into_iter().map(|one| one.runner_id).collect()
    }

    #[test]
    fn a_runner_is_behind_until_it_reports_the_change() {
        let applied = AppliedChanges::default();
        applied.reported(OWNER, &report(FIRST, 9, 15_000));
        assert_eq!(left(&applied, OWNER), [FIRST, SECOND]);
        applied.reported(OWNER, &report(FIRST, 10, 15_000));
        assert_eq!(left(&applied, OWNER), [SECOND]);
        assert_eq!(left(&applied, Uuid::nil()), [FIRST, SECOND], "another tenant's runner has the same id");
        applied.reported(OWNER, &report(FIRST, 8, 15_000));
        assert_eq!(left(&applied, OWNER), [SECOND], "an older report arrived late");
        applied.reported(OWNER, &report(FIRST, 12, 0));
        assert_eq!(left(&applied, OWNER), [FIRST, SECOND], "it has stopped");
    }

    #[tokio::test]
    async fn the_wait_ends_with_the_last_report() {
        let applied = AppliedChanges::default();
        let mut waits = Box::pin(applied.until_applied(OWNER, vec![behind(FIRST), behind(SECOND)]));
        assert!(waits.as_mut().now_or_never().is_none());
        applied.reported(OWNER, &report(SECOND, 11, 15_000));
        assert!(waits.as_mut().now_or_never().is_none());
        applied.reported(OWNER, &report(FIRST, 10, 15_000));
        assert!(waits.now_or_never().is_some());
    }
}
