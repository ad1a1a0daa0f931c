//! HTTP itself: connections, bodies, headers, limits, problem documents.

pub(crate) mod concurrency_limit;
pub(crate) mod connections;
pub(crate) mod cors;
pub(crate) mod guarded_body;
pub(crate) mod headers;
pub(crate) mod json_body;
pub(crate) mod metrics;
pub(crate) mod metrics_listener;
pub(crate) mod path;
pub(crate) mod precondition;
pub(crate) mod prefer;
pub(crate) mod problem;
pub(crate) mod public_url;
pub(crate) mod query;
pub(crate) mod rate_limit;
pub(crate) mod request_log;
pub(crate) mod serve;
pub(crate) mod streams;
pub(crate) mod unread_body;
pub(crate) mod write_timeout;
