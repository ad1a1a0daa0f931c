//! The sandbox with real worker processes: the parent's side from `sandbox`, the worker's from here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api;
mod failures;
mod fetch;
mod fixture;
mod isolation;
mod limits;
mod loading;
mod platform;
mod processes;
mod results;
mod timing;
mod walls;
