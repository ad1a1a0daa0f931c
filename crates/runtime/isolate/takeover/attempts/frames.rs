//! Forged data on the socket.

use std::sync::atomic::Ordering;

use nix::libc;
use rcrt_sandbox::protocol::{Frame, Kind, write_frame};

use super::{CALL, attempt};
use crate::attempt::{Attempt, AttemptResult, call};
use crate::expected::Expected;

pub fn all() -> Vec<Attempt> {
    vec![
        attempt("noise", Expected::Breach, || send(&[0xa5; 4096])),
        attempt("a frame of four gigabytes", Expected::Breach, || send(&[0xff, 0xff, 0xff, 0xff, 5, 0, 0, 0, 0])),
        attempt("a frame shorter than its header", Expected::Breach, || send(&[1, 0, 0, 0, 5])),
        attempt("an unknown kind of frame", Expected::Breach, || send(&[9, 0, 0, 0, 200, 1, 0, 0, 0, 0, 0, 0, 0])),
        attempt("naming another process", Expected::Breach, || forge(Kind::Process, 0, &1_u32.to_le_bytes())),
        attempt("a second hello", Expected::Breach, || forge(Kind::Hello, 0, b"{}")),
        attempt("a frame that only the parent sends", Expected::Breach, || forge(Kind::Call, 0, b"{}")),
        attempt("a piece of a snapshot", Expected::Breach, || forge(Kind::Snapshot, 0, b"x")),
        attempt("an invalid result", Expected::Breach, || forge(Kind::Done, 0, b"{\"kept\":1}")),
        attempt("a request that cannot be read", Expected::Breach, || forge(Kind::Fetch, 1, b"[]")),
        attempt("a call of an unknown method", Expected::Breach, || forge(Kind::Api, 1, b"{\"method\":\"rm\"}")),
        attempt("an invalid console line", Expected::Breach, || forge(Kind::Console, 0, b"\xff\xfe")),
        attempt("a credit that is not a number", Expected::Breach, || forge(Kind::Credit, 1, b"")),
        attempt("an invalid progress report", Expected::Breach, || forge(Kind::Progress, 0, b"{}")),
        attempt("a flood of progress reports", Expected::Breach, || {
            let report = frame(Kind::Progress, 0, b"{\"fraction\":0.5,\"message\":\"\"}")?;
            send(&report.repeat(20_000))
        }),
        attempt("the same operation twice", Expected::Breach, || {
            let payload = b"{\"method\":\"getBreadcrumb\",\"id\":\"x\"}";
            let frame = frame(Kind::Api, 1, payload)?;
            send(&[&frame[..], &frame[..]].concat())
        }),
        attempt("a flood of operations", Expected::Breach, || {
            let payload = b"{\"method\":\"getBreadcrumb\",\"id\":\"x\"}";
            let frames: Result<Vec<Vec<u8>>, _> = (1..1000).map(|op| frame(Kind::Api, op, payload)).collect();
            send(&frames?.concat())
        }),
        attempt("an op, then no exit", Expected::TimesOut, || {
            let all = u64::MAX;
            call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, &raw const all as usize, 0, 8, 0, 0])?;
            forge(Kind::Api, 1, b"{\"method\":\"getBreadcrumb\",\"id\":\"x\"}")
        }),
        attempt("half a frame, and silence", Expected::TimesOut, || send(&[200, 0, 0, 0, 5, 1])),
        attempt("a closed socket, then no exit", Expected::Exits, || {
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
