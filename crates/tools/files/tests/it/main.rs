#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::format_collect)]

mod append;
mod docx;
mod fixture;
mod hostile;
mod read;
mod word_documents;
mod write;
