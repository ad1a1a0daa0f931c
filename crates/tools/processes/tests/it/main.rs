//! Tests that run programs of tools for real: what they can and cannot do.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bash;
mod bounds;
mod endings;
mod escape;
mod fixture;
mod network;
mod packages;
mod python;
mod refused;
mod suite;
mod unprivileged_user;
