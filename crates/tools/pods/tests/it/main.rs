//! Programs in pods of a cluster on loopback, which runs them for real and misbehaves on request.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fixture;
mod leftovers;
mod misbehaving;
mod network;
mod packages;
mod required_isolation;
mod specification;
mod suite;
mod working_folder;
