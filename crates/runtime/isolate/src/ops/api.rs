//! The methods of `context.api`: one frame out, one frame back.

use std::cell::RefCell;
use std::rc::Rc;

use deno_core::{OpState, op2};
use rcrt_sandbox::protocol::{ApiReply, Kind, MAX_INPUT_BYTES, decode};
use rcrt_sandbox::{ApiCall, OpError};
use serde_json::Value;

use super::{answer, gone};
use crate::link::Link;

#[op2]
#[string]
pub async fn op_sandbox_api(state: Rc<RefCell<OpState>>, #[string] call: String) -> String {
    let link = state.borrow().borrow::<Link>().clone();
    answer(ask(&link, call).await)
}

async fn ask(link: &Link, call: String) -> Result<Value, OpError> {
    if call.len() > MAX_INPUT_BYTES {
        return Err(OpError::new("ResourceExhausted", format!("the arguments exceed {MAX_INPUT_BYTES} bytes")));
    }
    // The parent parses it too; here the tool learns at once what is wrong with its arguments.
    let _: ApiCall = decode(call.as_bytes()).map_err(|error| OpError::new("InvalidArguments", error.to_string()))?;
    let (op, wait) = link.start_op()?;
    link.send(Kind::Api, op, call).map_err(|_| gone())?;
    let payload = wait.await.map_err(|_| gone())?;
    match decode(&payload) {
        Ok(ApiReply::Ok(value)) => Ok(value),
        Ok(ApiReply::Err(error)) => Err(error),
        Err(_) => Err(gone()),
    }
}
