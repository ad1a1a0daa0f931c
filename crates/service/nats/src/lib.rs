//! Copies events to a stream of NATS JetStream, for any number of consumers.
//!
//! The client has what this needs and no more: one connection, publications with acknowledgements,
//! and requests. It deliberately does not know the store: it is a [`rcrt_breadcrumb::EventSink`],
//! and the store decides which events come and when they come again.
//!
//! Begin with `copy.rs`; `connection.rs` has the protocol.

mod address;
mod connection;
mod copy;
mod error;
mod message;

pub use address::Address;
pub use connection::Connection;
pub use copy::NatsCopy;
pub use error::NatsError;
pub use message::Message;
