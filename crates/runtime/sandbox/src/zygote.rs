//! The zygote: a process of the worker's program that has started the engine and made one isolate,
//! and never runs a tool's code. Workers are forked from it, so they share with it, and with each
//! other, all memory that none of them has changed: the loaded program and the new isolate.

#[cfg(target_os = "linux")]
mod copied;
#[cfg(target_os = "linux")]
mod live;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub use copied::CopiedProcess;
#[cfg(target_os = "linux")]
pub use live::Zygote;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{CopiedProcess, Zygote};
