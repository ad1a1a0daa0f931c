//! The restrictions on Linux. Each reports why it is not in force if a kernel refuses it. Most of
//! them apply to the process or the thread that sets them and to what it starts later, so they are
//! set while there is one thread.

pub mod empty_root;
pub mod keeper;
pub mod landlock;
pub mod namespaces;
pub mod privileges;
pub mod process;
pub mod seccomp;

/// The error is the reason why a protection is not in force, for an operator.
pub type ProtectionResult = Result<(), String>;
