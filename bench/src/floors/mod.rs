//! Baselines, each measured alone: the disk through Postgres, HTTP on this machine, the engine.

mod echo;
mod engine;
mod pgbench;
pub mod section;

pub use echo::{Echo, serve as serve_echo};
pub use engine::{at_low_load as engine_at_low_load, idle as idle_engines, side_by_side as engines_side_by_side};
pub use pgbench::PgBench;
