//! All attempts and their expected outcomes.

mod calls;
mod frames;
mod sequences;

use std::sync::atomic::AtomicU32;

use crate::attempt::{Attempt, AttemptResult, How};
use crate::expected::Expected;

/// The number of the running call, for forged frames.
pub static CALL: AtomicU32 = AtomicU32::new(0);

pub fn all() -> Vec<Attempt> {
    let mut all = calls::all();
    all.extend(sequences::all());
    all.extend(frames::all());
    all
}

fn attempt(name: &'static str, expected: Expected, function: fn() -> AttemptResult) -> Attempt {
    Attempt { name, expected, how: How::Function(function) }
}
