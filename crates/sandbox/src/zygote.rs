//! The zygote: a process of the worker's program that has started the engine and made one isolate, and never meets a tool's
//! code. Workers are its copies, so that they share with it, and with each other, whatever none of them has changed: the
//! program as it was loaded and the isolate as it was made, which would otherwise be there once for each worker.

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
