//! Following the changes.
