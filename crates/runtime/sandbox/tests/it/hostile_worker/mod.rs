//! Workers that break the protocol. This test program plays them itself: the ignored tests are its
//! roles.

mod breaches;
mod lost_protections;
mod next_process;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{Isolation, Limits};
use rcrt_sandbox::protocol::{
    Begin, CallDone, CallResult, Frame, Hello, Kind, Mode, PROTOCOL_VERSION, SOCKET_FD, decode, encode, read_frame,
    write_frame,
};
use rcrt_sandbox::{
    ApiCall, BodyStream, CgroupUse, FetchRequest, FetchResponse, HostOps, Invocation, Level, OpError, Protection,
    RequestContext, RunOutcome, Sandbox, SandboxOptions, Script, Task, WorkerCommand,
};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A host that never replies.
struct Silent;

#[async_trait]
impl HostOps for Silent {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        std::future::pending().await
    }

    async fn api(&self, _call: ApiCall) -> Result<Value, OpError> {
        std::future::pending().await
    }
}

/// One worker that plays `role`, an ignored test below this module.
fn options(role: &str) -> SandboxOptions {
    let mut options = SandboxOptions::new(WorkerCommand {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", "--ignored", &format!("hostile_worker::{role}")].map(Into::into).to_vec(),
    });
    options.level = Level::Minimal;
    options.cgroups = CgroupUse::None;
    options.max_workers = 1;
    options.spares = 0;
    options.idle = Duration::from_hours(1);
    options
}

async fn call(sandbox: &Sandbox) -> RunOutcome {
    sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await
}

fn invocation() -> Invocation {
    Invocation {
        task: Task::Call,
        owner_id: Uuid::from_u128(1),
        script: Arc::new(Script::new("tool.js".into(), String::new(), None)),
        input: Value::Null,
        request: RequestContext::default(),
        secrets: BTreeMap::new(),
        limits: Limits { timeout_ms: 120_000, ..Limits::default() },
        isolation: Isolation::Call,
        hrtime: false,
        seed: None,
    }
}

/// The worker's side: says hello. `None` if this was not started as a worker.
fn greeted(process: u32) -> Option<File> {
    greeted_behind(process, Vec::new, false)
}

/// Says hello and reports `protections`, and whether tool code runs in a child.
fn greeted_behind(process: u32, protections: impl FnOnce() -> Vec<Protection>, has_child: bool) -> Option<File> {
    let kind = std::fs::metadata(format!("/proc/self/fd/{SOCKET_FD}")).ok()?.file_type();
    if !kind.is_socket() || std::env::vars_os().next().is_some() {
        return None;
    }
    // SAFETY: the parent passed this socket, and nothing else in this process uses it.
    #[allow(unsafe_code)]
    let mut socket = unsafe { File::from_raw_fd(SOCKET_FD) };
    let begin: Begin = decode(&read_frame(&mut socket).unwrap().unwrap().payload).unwrap();
    write_frame(&mut socket, &Frame::process(process)).unwrap();
    if begin.mode == Mode::Snapshot {
        let none = encode(&Some("there is none")).unwrap();
        write_frame(&mut socket, &Frame::new(Kind::SnapshotEnd, 0, 0, none)).unwrap();
        std::process::exit(0);
    }
    let hello = Hello {
        protocol: PROTOCOL_VERSION,
        engine_version: "0".into(),
        isolates: 10,
        has_child,
        left_to_process: Vec::new(),
        protections: protections(),
    };
    send(&mut socket, Kind::Hello, 0, 0, &encode(&hello).unwrap());
    Some(socket)
}

/// Ignores errors: the parent may have closed the socket.
fn send(socket: &mut File, kind: Kind, call: u32, op: u32, payload: &[u8]) {
    let _ = write_frame(socket, &Frame::new(kind, call, op, payload.to_vec()));
}

fn done(socket: &mut File, result: CallResult) {
    send(socket, Kind::Done, 1, 0, &encode(&CallDone::fresh(result)).unwrap());
}

/// A result that is this JSON text.
fn result(json: impl Into<String>) -> CallResult {
    CallResult::Ok(RawValue::from_string(json.into()).unwrap())
}

/// Waits until the parent closes the socket.
fn stay(mut socket: File) {
    let _ = socket.read_to_end(&mut Vec::new());
}
