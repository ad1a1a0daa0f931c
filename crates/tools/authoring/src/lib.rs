//! The tools with which agents make tools: they write, test, publish, describe and delete tools of
//! their own. A tool is published only if the validators find no error and no example fails.
//!
//! It deliberately does not know the queue or the form of requests: a `tool.create.request.v1` is a
//! call of `create_tool`.
//!
//! Begin with `publication.rs` (from a description to a record) and `assessment.rs` (what is
//! checked).

mod assessment;
mod owned_tools;
mod publication;
mod reports;
mod tools;

pub use assessment::Assessor;
pub use tools::tools;
