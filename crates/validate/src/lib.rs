//! Validators.
