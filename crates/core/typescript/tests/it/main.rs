#![allow(clippy::unwrap_used, clippy::expect_used)]

mod compile;
mod hostile;
mod inspect;
