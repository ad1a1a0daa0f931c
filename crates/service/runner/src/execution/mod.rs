//! One call: from its claim to its response.

pub(crate) mod call;
pub(crate) mod deadline;
pub(crate) mod log_writer;
pub(crate) mod open_children;
pub(crate) mod preparation;
pub(crate) mod progress_writer;
pub(crate) mod request_event;
pub(crate) mod response_writer;
pub(crate) mod running;
pub(crate) mod schema_check;
pub(crate) mod secrets;
pub(crate) mod shadow;
pub(crate) mod shadow_run;
pub(crate) mod speculative_run;
pub(crate) mod stages;
pub(crate) mod telemetry;
pub(crate) mod tool_access;
pub(crate) mod tool_finder;
