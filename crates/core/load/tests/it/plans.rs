//! Invalid plans.

use std::sync::Arc;
use std::time::Duration;

use rcrt_load::{Pace, Plan, PlanError, drive};
use tokio_util::sync::CancellationToken;

use crate::targets::Does;

const SECOND: Duration = Duration::from_secs(1);

fn open(per_second: f64, duration: Duration) -> Plan {
    Plan { pace: Pace::Open { per_second, in_flight: 1 }, warm_up: Duration::ZERO, duration }
}

#[test]
fn invalid_plans_name_their_problem() {
    let closed = |in_flight, warm_up, duration| Plan { pace: Pace::Closed { in_flight }, warm_up, duration };
    for (plan, expected) in [
        (closed(1, Duration::ZERO, SECOND), Ok(())),
        (closed(0, SECOND, SECOND), Err(PlanError::NoneInFlight)),
        (closed(1_000_000, SECOND, SECOND), Err(PlanError::TooManyInFlight(1_000_000))),
        (closed(1, SECOND, Duration::ZERO), Err(PlanError::Duration)),
        (closed(1, Duration::MAX, SECOND), Err(PlanError::Duration)),
        (open(0.5, SECOND), Ok(())),
        (open(0.0, SECOND), Err(PlanError::Rate(0.0))),
        (open(-1.0, SECOND), Err(PlanError::Rate(-1.0))),
        (open(f64::INFINITY, SECOND), Err(PlanError::Rate(f64::INFINITY))),
        (Plan { warm_up: SECOND, ..open(0.25, SECOND) }, Err(PlanError::NoneDue(0.25))),
    ] {
        assert_eq!(plan.check(), expected, "{plan:?}");
    }
    assert!(matches!(open(f64::NAN, SECOND).check(), Err(PlanError::Rate(_))));
}

#[tokio::test]
async fn an_invalid_plan_is_reported_as_a_failure() {
    let target = Does(|_| async { panic!("an invalid plan makes no calls") });
    let measured = drive(Arc::new(target), &open(0.0, SECOND), &CancellationToken::new()).await;
    assert!(measured.failures.keys().next().unwrap().contains("the rate must be above 0"), "{measured:?}");
    assert_eq!((measured.calls, measured.per_second()), (0, 0.0));
}
