//! The other tools of an example: responses for the calls that it states.

use rcrt_breadcrumb::{OpError, StatedCall};
use rcrt_validate::expected::differences;
use serde_json::{Value, json};
use uuid::Uuid;

/// The most characters of an input in a message.
const MAX_SHOWN: usize = 200;

pub(crate) struct ExampleCalls {
    calls: Vec<StatedCall>,
    is_used: Vec<bool>,
}

impl ExampleCalls {
    pub fn new(calls: &[StatedCall]) -> Self {
        Self { calls: calls.to_vec(), is_used: vec![false; calls.len()] }
    }

    /// The result of the first unused call that is like this one; if all are used, that of the
    /// last. As the runner returns it.
    pub fn answer(&mut self, tool: &str, input: &Value) -> Result<Value, OpError> {
        let fits = |at: &usize| mismatches(&self.calls[*at], tool, input).is_empty();
        let matching: Vec<usize> = (0..self.calls.len()).filter(fits).collect();
        let unused = matching.iter().find(|at| !self.is_used[**at]);
        let Some(at) = unused.or(matching.last()).copied() else {
            return Err(OpError::new("NotFound", self.unmatched(tool, input)));
        };
        self.is_used[at] = true;
        let call = &self.calls[at];
        Ok(match &call.error {
            None => json!({"output": call.output}),
            Some(error) => json!({"failure": {
                "code": error.code,
                "message": error.message,
                "tool": tool,
                "requestId": Uuid::nil(),
                "details": error.details,
                "is_retryable": error.code.is_retryable(),
            }}),
        })
    }

    /// The calls that the example states and the tool did not make.
    pub fn unused(&self) -> Vec<String> {
        let named = |(call, is_used): (&StatedCall, &bool)| (!is_used).then(|| format!("callTool({:?})", call.tool));
        self.calls.iter().zip(&self.is_used).filter_map(named).collect()
    }

    fn unmatched(&self, tool: &str, input: &Value) -> String {
        let shown: String = input.to_string().chars().take(MAX_SHOWN).collect();
        let nearest = self.calls.iter().map(|call| (call, mismatches(call, tool, input)));
        match nearest.min_by_key(|(call, found)| (call.tool != tool, found.len())) {
            None => format!("the example states no call; the tool called {tool:?} with the input {shown}"),
            Some((call, found)) => format!(
                "the example does not state the call of {tool:?} with the input {shown}; the nearest is a call of \
                 {:?}, where {}",
                call.tool,
                found.join("; ")
            ),
        }
    }
}

/// Why a call is not the stated one.
fn mismatches(stated: &StatedCall, tool: &str, input: &Value) -> Vec<String> {
    if stated.tool != tool {
        return vec!["the tool differs".to_owned()];
    }
    let of_input = stated.input.as_ref().map(|expected| differences(expected, input)).unwrap_or_default();
    of_input.into_iter().map(|one| format!("the input at {} {}", one.path, one.message)).collect()
}
