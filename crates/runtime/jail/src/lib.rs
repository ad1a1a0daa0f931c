//! Restrictions around processes: those that a process applies to itself (`protections`),
//! control groups, which are set from outside (`cgroup`), and programs that run under all of them
//! (`command`).
//!
//! It does not depend on an engine, a tool or a store, and it sets no policy: its users decide what
//! a process can see and use.
//!
//! Begin with `protections/mod.rs`, `command/mod.rs` and `cgroup/mod.rs`.
//!
//! # Example
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! use rcrt_jail::command::{CommandLimits, CommandSpec, FilesystemView, Helper, Jail, JailError};
//!
//! async fn date(helper: Helper) -> Result<String, JailError> {
//!     let command = CommandSpec {
//!         program: "/bin/date".into(),
//!         arguments: vec!["-u".into()],
//!         environment: BTreeMap::new(),
//!         folder: "/tmp".into(),
//!         view: FilesystemView::of_programs(false),
//!         network: false,
//!         bounds: CommandLimits::default(),
//!     };
//!     let finished = Jail::open(helper).await.run(&command).await?;
//!     Ok(finished.stdout.text())
//! }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod cgroup;
pub mod command;
#[cfg(target_os = "linux")]
pub mod protections;
