//! The walls around the worker, one file each. They go up at the start of the process, before the engine and before
//! any thread. A wall that this kernel does not offer is reported, not hidden: `rcrt doctor` shows the list.

mod descriptors;
mod landlock;
mod limits;
mod namespaces;
mod no_new_privileges;
mod parent_death;
mod priority;

use sandbox::protocol::{Protection, ProtectionState};

pub use limits::MemoryCeiling;

/// Puts up every wall there is, in an order in which none stands in the way of the next. Descriptors from
/// `first_foreign` on are not this process's own.
pub fn enter(first_foreign: i32) -> (Vec<Protection>, MemoryCeiling) {
    let descriptors = descriptors::close_from(first_foreign);
    // Opened while files can still be opened.
    let ceiling = MemoryCeiling::open();
    let protections = vec![
        named("no inherited descriptors", descriptors),
        named("no new privileges", no_new_privileges::apply()),
        named("namespaces", namespaces::apply()),
        // After the namespaces: a change of credentials can clear it.
        named("parent death signal", parent_death::apply()),
        named("landlock", landlock::apply()),
        named("resource limits", limits::apply()),
        named("memory ceiling", ceiling.available()),
        named("low priority", priority::apply()),
    ];
    (protections, ceiling)
}

fn named(name: &str, outcome: Result<(), String>) -> Protection {
    let state = match outcome {
        Ok(()) => ProtectionState::Applied,
        Err(reason) => ProtectionState::Unavailable(reason),
    };
    Protection { name: name.into(), state }
}
