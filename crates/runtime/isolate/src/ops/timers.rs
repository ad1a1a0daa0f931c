//! The active timers. The engine's host counts them too, but not those of `AbortSignal.timeout`.

use std::cell::RefCell;
use std::collections::HashSet;

use deno_core::{OpState, op2};

#[derive(Default)]
pub struct Timers(RefCell<HashSet<i32>>);

impl Timers {
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

#[op2(fast)]
pub fn op_sandbox_timer_track(state: &mut OpState, #[smi] id: i32, _repeats: bool, _is_system: bool) {
    state.borrow::<Timers>().0.borrow_mut().insert(id);
}

#[op2(fast)]
pub fn op_sandbox_timer_untrack(state: &mut OpState, #[smi] id: i32) {
    state.borrow::<Timers>().0.borrow_mut().remove(&id);
}

#[op2(fast)]
pub fn op_sandbox_has_timers(state: &mut OpState) -> bool {
    !state.borrow::<Timers>().is_empty()
}
