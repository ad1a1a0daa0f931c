//! Programs of tools, run for real: what they can do, and what they cannot.
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
mod who;
mod words;
