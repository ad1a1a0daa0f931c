//! Checks a call's input and output against the tool's schemas.

use std::sync::Arc;

use rcrt_breadcrumb::{
    ErrorCode, LimitName, LimitReached, ToolFailure, Violation, Violations, check_javascript_numbers,
};
use rcrt_validate::Schema;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::registry::tool::Tool;

/// The input, if it matches the tool's schema, and the tool gets every number as it is. `deadline`:
/// when the call's time limit is used up.
pub(crate) async fn checked_input(tool: &Arc<Tool>, input: Value, deadline: Instant) -> Result<Value, ToolFailure> {
    let input = checked(tool, Side::Input, input, deadline).await?;
    if tool.definition.is_code()
        && let Err(rounded) = check_javascript_numbers(&input)
    {
        let message = format!("the tool's code cannot get the input unchanged: {rounded}");
        return Err(
            ToolFailure::new(ErrorCode::InvalidArguments, message).with_details(json!({"violations": [rounded]}))
        );
    }
    Ok(input)
}

/// Like [`checked_input`], for the output.
pub(crate) async fn checked_output(tool: &Arc<Tool>, output: Value, deadline: Instant) -> Result<Value, ToolFailure> {
    checked(tool, Side::Output, output, deadline).await
}

async fn checked(tool: &Arc<Tool>, side: Side, value: Value, deadline: Instant) -> Result<Value, ToolFailure> {
    let (value, violations) = check(tool, side, value, deadline).await?;
    if violations.is_empty() {
        return Ok(value);
    }
    let name = side.name();
    let code = if side == Side::Input { ErrorCode::InvalidArguments } else { ErrorCode::InvalidOutput };
    let message = format!("the {name} does not match the tool's {name}_schema: {}", Violations::listed(&violations));
    Err(ToolFailure::new(code, message).with_details(json!({"violations": violations})))
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Input,
    Output,
}

impl Side {
    fn schema(self, tool: &Tool) -> &Schema {
        match self {
            Self::Input => &tool.input,
            Self::Output => &tool.output,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// Checking a large value against an expensive schema takes long. It runs outside of the async
/// runtime, in the tenant's fair share, and within the call's time limit.
async fn check(
    tool: &Arc<Tool>,
    side: Side,
    value: Value,
    deadline: Instant,
) -> Result<(Value, Vec<Violation>), ToolFailure> {
    let schema = side.schema(tool);
    if schema.is_quick(&value) {
        let violations = schema.check(&value);
        return Ok((value, violations));
    }
    let (definition, checked) = (&tool.definition, tool.clone());
    let check = move || {
        let violations = side.schema(&checked).check(&value);
        (value, violations)
    };
    rcrt_compute::pool().run_until(tool.owner_id, deadline, check).await.map_err(|failed| match failed {
        rcrt_compute::ComputeError::DeadlineExceeded => {
            let allowed = definition.limits.timeout_ms;
            let message = format!("the call's limit of {allowed} ms passed before its {} was checked", side.name());
            let reached = LimitReached { limit: LimitName::TimeoutMs, allowed };
            ToolFailure::new(ErrorCode::Timeout, message).with_details(json!(reached))
        }
        rcrt_compute::ComputeError::QueueFull => {
            ToolFailure::new(ErrorCode::ExecutionFailed, "too many calls wait for their checks; try again")
                .retryable(true)
        }
        rcrt_compute::ComputeError::Panicked => ToolFailure::new(
            ErrorCode::ExecutionFailed,
            "the check against the schema failed, which is a fault of the runtime; its runner's log has the cause",
        ),
    })
}
