//! Seeding: writes a set of files into a store. It creates what is new, updates what changed,
//! leaves the rest alone, and can remove records of an earlier seeding that the set no longer has.
//! It uses the store through the trait, so `up` uses it in process and `bootstrap` over HTTP.

mod apply;
mod compare;
mod find;
mod origin;
mod set;

pub use apply::{Options, SeedCheck, SeedOutcome, SeedResult, apply};
pub use find::{every, tools_named};
pub use origin::source_of;
pub use set::{Seed, SeedSet, source_name};
