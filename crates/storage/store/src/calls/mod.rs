//! The queue of calls. A call's row is written with its request. Each later step names its lease,
//! and a statement that finds another fence or state changes nothing.

pub(crate) mod applied_changes;
pub(crate) mod egress_log;
pub(crate) mod history;
pub(crate) mod history_details;
pub(crate) mod runners;
pub(crate) mod stats;

mod cancel;
mod claim;
mod deadlines;
mod descendants;
mod lease;
mod orphans;
mod queued;
mod rescue;
mod store_response;

pub(crate) use self::cancel::cancel;
pub(crate) use self::claim::claim;
pub(crate) use self::deadlines::time_out_overdue;
pub(crate) use self::descendants::count_descendants;
pub(crate) use self::lease::{complete, heartbeat, release, start};
pub(crate) use self::orphans::cancel_orphans;
pub(crate) use self::queued::find;
pub(crate) use self::rescue::rescue;
pub(crate) use self::store_response::abandon;
