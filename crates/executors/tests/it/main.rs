//! Executors through their public doors: the gate on real sockets, an HTTP tool, and what a tool's code may do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod address;
mod chain;
mod gate;
mod host;
mod network;
mod redirects;
mod rest;
