//! The runner on the real store. A fake executor runs the tools: a runner knows executors only by
//! their trait.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests write values inline and hold little state.
#![allow(clippy::needless_pass_by_value, clippy::similar_names, clippy::unnecessary_wraps, clippy::large_futures)]

mod allow_lists;
mod bootstrap;
mod calls;
mod cancelling;
mod catalog;
mod child_calls;
mod deadlines;
mod debug;
mod deprecated;
mod discovery;
mod drafts;
mod failures;
mod fake;
mod fixture;
mod heavy_checks;
mod io_bound;
mod large_results;
mod leases;
mod local_dispatch;
mod missing_requirements;
mod names;
mod peer_runners;
mod precedence;
mod profiles;
mod progress;
mod read_your_writes;
mod reports;
mod rights;
mod scale;
mod secrets;
mod shadow;
mod speculation;
mod stages;
mod stopping;
mod subscriptions;
mod telemetry;
mod tools;
mod tracing;
mod versions;
