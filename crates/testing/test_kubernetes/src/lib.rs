//! A cluster for tests, with the part of Kubernetes that pods of programs need: an API server over
//! TLS that keeps pods and secrets, answers as the real one does and refuses what a role does not
//! allow, and a kubelet that runs each container in a jail, as its specification says. On request
//! it misbehaves.
//!
//! Begin with `cluster.rs`, then `api.rs` and `kubelet.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

mod api;
mod cluster;
mod container;
mod fault;
mod kubelet;
mod objects;
mod status;

pub use cluster::Cluster;
pub use fault::Fault;
