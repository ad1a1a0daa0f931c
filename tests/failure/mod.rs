//! What dies, and what must hold all the same: processes killed with SIGKILL in the middle of work. Every request ends
//! with exactly one response, and a subscriber that stays or comes back has seen every event once.

mod flood;
mod postgres;
mod runner;
mod schedule;
mod server;
