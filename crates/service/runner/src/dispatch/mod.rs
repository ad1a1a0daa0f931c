//! Which calls this runner takes, and when: from the queue, or while their requests are written.

pub(crate) mod calls;
pub(crate) mod claim_loop;
pub(crate) mod claim_pacing;
pub(crate) mod local;
