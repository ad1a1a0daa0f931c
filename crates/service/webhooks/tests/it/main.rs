#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod calls;
mod dead_letters;
mod delivering;
mod harness;
mod leases;
mod receivers;
mod signature;
