//! Finding records.
