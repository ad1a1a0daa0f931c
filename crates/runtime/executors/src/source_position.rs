//! The place in a tool's source where it failed.

use rcrt_breadcrumb::ToolFailure;

/// Line and column, from 1, of the first frame of the failure's stack that is in this file.
pub fn source_position(failure: &ToolFailure, file_name: &str) -> Option<(u64, u64)> {
    let stack = failure.details.as_ref()?.get("stack")?.as_str()?;
    let mut parts = stack.split_once(&format!("{file_name}:"))?.1.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
