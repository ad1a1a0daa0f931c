//! Processes are killed with SIGKILL while they work. Even so, every request gets exactly one
//! response, and a subscriber that stays connected or reconnects sees every event once.

mod creation;
mod failover;
mod flood;
mod postgres;
mod recovery;
mod runner;
mod schedule;
mod server;
mod several;
