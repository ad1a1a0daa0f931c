//! The queue of calls. A call's row is written with its request; from there on each step names the lease that it acts
//! under, and a statement that finds another fence or state changes nothing.

mod answer;
mod cancel;
mod claim;
pub(crate) mod complete;
mod hints;
mod late;
mod lease;
mod queued;
mod rescue;
mod standbys;

pub(crate) use self::answer::abandon;
pub(crate) use self::cancel::cancel;
pub(crate) use self::claim::claim;
pub(crate) use self::hints::{Heard, Hints};
pub(crate) use self::late::answer_late;
pub(crate) use self::lease::{heartbeat, release, start};
pub(crate) use self::queued::{Queued, find};
pub(crate) use self::rescue::rescue;
pub(crate) use self::standbys::Standbys;
