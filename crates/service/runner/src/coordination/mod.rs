//! What the calls of this runner hold, leases and slots, and what this runner and the others of its
//! tenant know of each other.

pub(crate) mod backlog;
pub(crate) mod drain_request;
pub(crate) mod leases;
pub(crate) mod peer_runners;
pub(crate) mod queue_hints;
pub(crate) mod reporter;
pub(crate) mod response_hints;
pub(crate) mod slot_gauges;
pub(crate) mod slot_pool;
pub(crate) mod slots;
pub(crate) mod waiting_calls;
