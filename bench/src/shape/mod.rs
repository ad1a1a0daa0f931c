//! The shape of cost: how rate and latency depend on the calls in flight, the size of a request,
//! the size of the store and the number of tools.

pub mod in_flight;
mod point;
pub mod request_size;
pub mod store_size;
