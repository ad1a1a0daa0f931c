//! The sandbox with real worker processes: the parent's side from `sandbox`, the worker's from
//! here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api;
mod caches;
mod clocks;
mod conversion;
mod debug;
mod escape;
mod examples;
mod failures;
mod fetch;
mod fixture;
mod golden;
mod isolation;
#[cfg(target_os = "linux")]
mod leftovers;
mod limits;
mod loading;
mod memory;
mod platform;
mod pollution;
mod processes;
mod progress;
mod protections;
mod results;
#[cfg(target_os = "linux")]
mod reuse;
#[cfg(target_os = "linux")]
mod takeover;
mod timing;
