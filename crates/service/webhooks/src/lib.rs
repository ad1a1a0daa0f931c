//! Delivers events to webhooks: takes deliveries from their queue, signs them, posts each through
//! the egress gate, and records the outcome.
//!
//! It deliberately does not know which events a webhook gets or how they enter the queue (the store
//! does), nor the HTTP routes. Any number of deliverers can work on one queue: each delivery is
//! under a lease.
//!
//! Begin with `deliverer.rs`, `attempt.rs` and `outcome.rs`.
//!
//! # Example
//! ```no_run
//! use std::sync::Arc;
//!
//! use rcrt_breadcrumb::Deliveries;
//! use rcrt_egress::{Egress, EgressError};
//! use rcrt_webhooks::{Deliverer, DeliveryOptions};
//! use tokio_util::sync::CancellationToken;
//!
//! /// Posts the deliveries of the queue until it is stopped.
//! async fn deliver(queue: Arc<dyn Deliveries>, stop: CancellationToken) -> Result<(), EgressError> {
//!     let options = DeliveryOptions::default();
//!     let gate = Egress::new(options.egress(Vec::new()))?;
//!     Deliverer::new(queue, Arc::new(gate), options).run(stop).await;
//!     Ok(())
//! }
//! ```

mod attempt;
mod backoff;
mod deliverer;
mod options;
mod outcome;
mod signature;

pub use deliverer::Deliverer;
pub use options::DeliveryOptions;
pub use signature::{Signed, sign};
