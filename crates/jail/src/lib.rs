//! Walls around processes: those that a process puts up around itself (`walls`, a file each), control groups, which are
//! put around it from outside, and programs that run behind all of them (`command`).
//!
//! It knows no engine, no tool and no store, and decides nothing: what may be seen, reached and used is for those who
//! use it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod cgroup;
pub mod command;
#[cfg(target_os = "linux")]
pub mod walls;
