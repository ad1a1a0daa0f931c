//! Posts events to where agents want them: takes deliveries from their queue, signs them, sends each through the egress
//! gate, and says what became of it.
//!
//! It deliberately does not know which events a webhook gets, nor how they came into the queue: that is the store's. Nor
//! does it know HTTP's routes. Any number of deliverers may work on one queue: what one has taken is under its lease.

mod attempt;
mod backoff;
mod deliverer;
mod options;
mod outcome;
mod signature;

pub use deliverer::Deliverer;
pub use options::DeliveryOptions;
pub use signature::{Signed, sign};
