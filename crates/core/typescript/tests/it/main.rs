#![allow(clippy::unwrap_used, clippy::expect_used)]

mod builtin_changes;
mod compile;
mod declare;
mod hostile;
mod inspect;
mod tool_calls;
