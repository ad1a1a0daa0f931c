//! Delivers events to webhooks: takes deliveries from their queue, signs them, posts each through
//! the egress gate, and records the outcome.
//!
//! It deliberately does not know which events a webhook gets or how they enter the queue (the store
//! does), nor the HTTP routes. Any number of deliverers can work on one queue: each delivery is
//! under a lease.
//!
//! Begin with `deliverer.rs`, `attempt.rs` and `outcome.rs`.

mod attempt;
mod backoff;
mod deliverer;
mod options;
mod outcome;
mod signature;

pub use deliverer::Deliverer;
pub use options::DeliveryOptions;
pub use signature::{Signed, sign};
