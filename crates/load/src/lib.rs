//! Generates load and measures it. It knows of no tool, no store and no HTTP: what is called stands behind [`Target`].
//! Latencies are taken so that a system that stalls cannot hide it: in an open loop each counts from the moment when
//! the call was due, not from when there was room to send it.

mod target;

pub use target::Target;
