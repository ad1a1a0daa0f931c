//! All attempts and their expected outcomes.

mod calls;
mod deeds;
mod frames;

use std::sync::atomic::AtomicU32;

use crate::attempt::{Attempt, AttemptResult, How};
use crate::must::Must;

/// The number of the running call, for forged frames.
pub static CALL: AtomicU32 = AtomicU32::new(0);

pub fn all() -> Vec<Attempt> {
    let mut all = calls::all();
    all.extend(deeds::all());
    all.extend(frames::all());
    all
}

fn deed(name: &'static str, must: Must, deed: fn() -> AttemptResult) -> Attempt {
    Attempt { name, must, how: How::Deed(deed) }
}
