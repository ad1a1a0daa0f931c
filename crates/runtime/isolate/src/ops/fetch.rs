//! One HTTP exchange, in four steps: start it, wait for the response's head, read its body, or
//! abort it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use deno_core::{AsyncRefCell, CancelHandle, JsBuffer, OpState, op2};
use deno_error::JsErrorBox;
use rcrt_sandbox::protocol::{FetchHead, FetchReply, FetchStart, Kind, decode, encode};
use rcrt_sandbox::{FetchRequest, OpError, Redirect};
use tokio::sync::{mpsc, oneshot};

use super::body::{AnswerBody, Incoming, RequestBody};
use super::{answer, gone};
use crate::link::{BodyPiece, Link};

/// The exchanges of the running call, by op.
#[derive(Default)]
pub struct Fetches(HashMap<u32, Exchange>);

struct Exchange {
    call: u32,
    head: Option<oneshot::Receiver<Bytes>>,
    body: Option<mpsc::Receiver<BodyPiece>>,
    /// Sends the request's body; aborted with the exchange.
    upload: Option<deno_core::unsync::JoinHandle<()>>,
}

/// `{"ok": op}` or `{"err": …}`. `body` is the whole body, or `rid` a stream to read it from (-1:
/// none).
#[op2]
#[string]
pub fn op_sandbox_fetch_start(
    state: &mut OpState,
    #[string] method: String,
    #[string] url: String,
    #[string] redirect: &str,
    #[serde] headers: Vec<(String, String)>,
    #[buffer] body: Option<JsBuffer>,
    #[smi] rid: i32,
) -> String {
    let redirect = match redirect {
        "follow" => Redirect::Follow,
        "error" => Redirect::Error,
        "manual" => Redirect::Manual,
        other => {
            return answer::<u32>(Err(OpError::new("TypeError", format!("redirect: {other:?} is not a valid mode"))));
        }
    };
    answer(start(state, FetchRequest { method, url, headers, redirect }, body, rid))
}

fn start(state: &mut OpState, request: FetchRequest, body: Option<JsBuffer>, rid: i32) -> Result<u32, OpError> {
    let link = state.borrow::<Link>().clone();
    let source = match u32::try_from(rid) {
        Ok(rid) => Some(state.resource_table.take_any(rid).map_err(|_| gone())?),
        Err(_) => None,
    };
    let has_body = body.is_some() || source.is_some();
    let (op, head) = link.start_op()?;
    let call = link.call();
    let pieces = link.open_body(op);
    let credit = has_body.then(|| link.open_credit(op));
    let start = encode(&FetchStart { request, has_body }).map_err(|_| gone())?;
    link.send(Kind::Fetch, op, start).map_err(|error| {
        link.close_op(op);
        OpError::new("TypeError", error.to_string())
    })?;
    let upload = credit.map(|credit| {
        let sender = RequestBody { link, call, op, credit };
        match (body, source) {
            (Some(bytes), _) => {
                let bytes = Bytes::copy_from_slice(&bytes);
                deno_core::unsync::spawn(sender.send_bytes(bytes))
            }
            (None, Some(source)) => deno_core::unsync::spawn(sender.send_stream(source)),
            (None, None) => deno_core::unsync::spawn(async {}),
        }
    });
    state.borrow_mut::<Fetches>().0.insert(op, Exchange { call, head: Some(head), body: Some(pieces), upload });
    Ok(op)
}

/// `{"ok": head}` or `{"err": …}`.
#[op2]
#[string]
pub async fn op_sandbox_fetch_head(state: Rc<RefCell<OpState>>, #[smi] op: u32) -> String {
    let head = state.borrow_mut().borrow_mut::<Fetches>().0.get_mut(&op).and_then(|exchange| exchange.head.take());
    answer(wait_for_head(head).await)
}

async fn wait_for_head(head: Option<oneshot::Receiver<Bytes>>) -> Result<FetchHead, OpError> {
    let payload = head.ok_or_else(gone)?.await.map_err(|_| gone())?;
    match decode(&payload) {
        Ok(FetchReply::Ok(head)) => Ok(head),
        Ok(FetchReply::Err(error)) => Err(error),
        Err(_) => Err(gone()),
    }
}

/// The resource from which the response's body is read.
#[op2(fast)]
#[smi]
pub fn op_sandbox_fetch_body(state: &mut OpState, #[smi] op: u32) -> Result<u32, JsErrorBox> {
    let link = state.borrow::<Link>().clone();
    let exchange = state.borrow_mut::<Fetches>().0.get_mut(&op);
    let taken = exchange.and_then(|exchange| Some((exchange.call, exchange.body.take()?)));
    let (call, receiver) = taken.ok_or_else(|| JsErrorBox::type_error("the operation was aborted"))?;
    Ok(state.resource_table.add(AnswerBody {
        link,
        call,
        op,
        pieces: AsyncRefCell::new(Incoming { receiver, rest: Bytes::new() }),
        cancel: CancelHandle::default(),
    }))
}

/// Aborts the exchange; the parent stops it.
#[op2(fast)]
pub fn op_sandbox_fetch_abort(state: &mut OpState, #[smi] op: u32) {
    let Some(exchange) = state.borrow_mut::<Fetches>().0.remove(&op) else { return };
    if let Some(upload) = exchange.upload {
        upload.abort();
    }
    let link = state.borrow::<Link>();
    link.close_op(op);
    let _ = link.send_frame(&rcrt_sandbox::protocol::Frame::new(Kind::Abort, exchange.call, op, Bytes::new()));
}
