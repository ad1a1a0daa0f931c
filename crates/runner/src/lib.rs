//! Runner.
