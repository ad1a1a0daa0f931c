//! Forged data on the socket.

use std::sync::atomic::Ordering;

use nix::libc;
use rcrt_sandbox::protocol::{Frame, Kind, write_frame};

use super::{CALL, deed};
use crate::attempt::{Attempt, AttemptResult, call};
use crate::must::Must;

pub fn all() -> Vec<Attempt> {
    vec![
        deed("noise", Must::Breach, || send(&[0xa5; 4096])),
        deed("a frame of four gigabytes", Must::Breach, || send(&[0xff, 0xff, 0xff, 0xff, 5, 0, 0, 0, 0])),
        deed("a frame shorter than its header", Must::Breach, || send(&[1, 0, 0, 0, 5])),
        deed("an unknown kind of frame", Must::Breach, || send(&[9, 0, 0, 0, 200, 1, 0, 0, 0, 0, 0, 0, 0])),
        deed("naming another process", Must::Breach, || forge(Kind::Process, 0, &1_u32.to_le_bytes())),
        deed("a second hello", Must::Breach, || forge(Kind::Hello, 0, b"{}")),
        deed("a frame that only the parent sends", Must::Breach, || forge(Kind::Call, 0, b"{}")),
        deed("a piece of a snapshot", Must::Breach, || forge(Kind::Snapshot, 0, b"x")),
        deed("an invalid result", Must::Breach, || forge(Kind::Done, 0, b"{\"kept\":1}")),
        deed("a request that cannot be read", Must::Breach, || forge(Kind::Fetch, 1, b"[]")),
        deed("a call of an unknown method", Must::Breach, || forge(Kind::Api, 1, b"{\"method\":\"rm\"}")),
        deed("an invalid console line", Must::Breach, || forge(Kind::Console, 0, b"\xff\xfe")),
        deed("a credit that is not a number", Must::Breach, || forge(Kind::Credit, 1, b"")),
        deed("an invalid progress report", Must::Breach, || forge(Kind::Progress, 0, b"{}")),
        deed("a flood of progress reports", Must::Breach, || {
            let report = frame(Kind::Progress, 0, b"{\"fraction\":0.5,\"message\":\"\"}")?;
            send(&report.repeat(20_000))
        }),
        deed("the same operation twice", Must::Breach, || {
            let payload = b"{\"method\":\"getBreadcrumb\",\"id\":\"x\"}";
            let frame = frame(Kind::Api, 1, payload)?;
            send(&[&frame[..], &frame[..]].concat())
        }),
        deed("a flood of operations", Must::Breach, || {
            let payload = b"{\"method\":\"getBreadcrumb\",\"id\":\"x\"}";
            let frames: Result<Vec<Vec<u8>>, _> = (1..1000).map(|op| frame(Kind::Api, op, payload)).collect();
            send(&frames?.concat())
        }),
        deed("an op, then no exit", Must::TimeOut, || {
            let all = u64::MAX;
            call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, &raw const all as usize, 0, 8, 0, 0])?;
            forge(Kind::Api, 1, b"{\"method\":\"getBreadcrumb\",\"id\":\"x\"}")
        }),
        deed("half a frame, and silence", Must::TimeOut, || send(&[200, 0, 0, 0, 5, 1])),
        deed("a closed socket, then no exit", Must::End, || {
            call(libc::SYS_close, [3, 0, 0, 0, 0, 0])?;
            stay()
        }),
    ]
}

fn frame(kind: Kind, op: u32, payload: &'static [u8]) -> Result<Vec<u8>, std::io::Error> {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, &Frame::new(kind, CALL.load(Ordering::Relaxed), op, payload))
        .map_err(std::io::Error::other)?;
    Ok(bytes)
}

fn forge(kind: Kind, op: u32, payload: &[u8]) -> AttemptResult {
    let mut bytes = Vec::new();
    let frame = Frame::new(kind, CALL.load(Ordering::Relaxed), op, payload.to_vec());
    write_frame(&mut bytes, &frame).map_err(std::io::Error::other)?;
    send(&bytes)
}

/// The bytes must have their effect without further data.
fn send(bytes: &[u8]) -> AttemptResult {
    let mut rest = bytes;
    while !rest.is_empty() {
        let sent = call(libc::SYS_write, [3, rest.as_ptr() as usize, rest.len(), 0, 0, 0])?;
        rest = &rest[sent as usize..];
    }
    stay()
}

fn stay() -> AttemptResult {
    loop {
        std::thread::park();
    }
}
