#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::format_collect)]

mod append;
mod desk;
mod docx;
mod hostile;
mod read;
mod word;
mod write;
