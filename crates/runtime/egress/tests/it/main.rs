//! The gate on real sockets, and the secrets of a call through it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests say values in place and hold little state.
#![allow(clippy::needless_pass_by_value, clippy::similar_names, clippy::unnecessary_wraps, clippy::large_futures)]

mod denied;
mod gate;
mod host;
mod log;
mod malicious_servers;
mod own;
mod proxies;
mod redirects;
mod resolver;
mod secure;
mod vault;
