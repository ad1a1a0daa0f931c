//! The restrictions on Linux. Each reports why it is not in force if a kernel refuses it. Most of
//! them apply to the process or the thread that sets them and to what it starts later, so they are
//! set while there is one thread.

pub mod capabilities;
pub mod core_dumps;
pub mod descriptors;
pub mod empty_root;
pub mod keeper;
pub mod landlock;
pub mod namespaces;
pub mod no_new_privileges;
pub mod ordinary_user;
pub mod parent_death;
pub mod priority;
pub mod seccomp;

/// The error is the reason why a protection is not in force, for an operator.
pub type Outcome = Result<(), String>;
