//! Worker side.
