//! Which calls this runner takes, and when: claims, leases, slots.

pub(crate) mod calls;
pub(crate) mod claim_loop;
pub(crate) mod claim_pacing;
pub(crate) mod leases;
pub(crate) mod local;
pub(crate) mod peer_runners;
pub(crate) mod queue_hints;
pub(crate) mod reporter;
pub(crate) mod slot_pool;
pub(crate) mod slots;
