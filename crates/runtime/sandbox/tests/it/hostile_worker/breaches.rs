//! Frames that the protocol does not allow, during and after a call.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_sandbox::protocol::{
    BodyEnd, CallDone, FetchStart, Frame, Kind, MAX_CONSOLE_LINES, MAX_OPS_IN_FLIGHT, MAX_OUTPUT_BYTES,
    MAX_PROGRESS_BYTES, ProgressUpdate, SOCKET_FD, decode, encode, read_frame, write_frame,
};
use rcrt_sandbox::{
    ApiCall, BodyStream, ConsoleLevel, ConsoleLine, FetchRequest, FetchResponse, HostOps, Level, OpError, Redirect,
    RunOutcome, Sandbox, SandboxOptions,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{call, done, greeted, invocation, options, result, send, stay};

/// One call in a worker that plays `role`.
async fn outcome(role: &str) -> RunOutcome {
    let sandbox = start(role).await;
    let outcome = call(&sandbox).await;
    sandbox.close().await;
    outcome
}

async fn start(role: &str) -> Sandbox {
    start_with(role, |_| {}).await
}

async fn start_with(role: &str, change: impl FnOnce(&mut SandboxOptions)) -> Sandbox {
    let mut options = options(&format!("breaches::{role}"));
    change(&mut options);
    Sandbox::start(options).await.unwrap()
}

async fn breach(role: &str) -> String {
    let failure: ToolFailure = outcome(role).await.result.expect_err(role);
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, false), "{role}: {failure}");
    assert!(failure.message.starts_with("the tool's worker process was terminated: "), "{role}: {failure}");
    failure.message
}

#[tokio::test]
async fn a_worker_that_breaks_the_protocol_is_terminated() {
    let broken = [
        ("floods_the_console", "more console lines"),
        ("writes_after_the_console_is_full", "more console lines"),
        ("starts_too_many_ops", "more than 64 operations"),
        ("reuses_an_op_number", "operation 7 twice"),
        ("sends_an_unreadable_op", "cannot be read"),
        ("names_another_process_later", "a frame Process"),
        ("starts_twice", "a frame Started"),
        ("sends_an_unrequested_code_cache", "a frame CodeCache"),
        ("sends_frames_of_another_call", "other calls"),
        ("sends_noise", "unknown frame kind"),
        ("floods_with_progress", "more often than a call can"),
        ("reports_progress_above_one", "an invalid progress report"),
        ("sends_a_too_long_progress_message", "an invalid progress report"),
        ("sends_malformed_progress", "progress report that cannot be read"),
    ];
    for (role, words) in broken {
        let message = breach(role).await;
        assert!(message.contains(words), "{role}: {message}");
    }
}

#[tokio::test]
async fn too_large_a_result_is_refused() {
    let failure = outcome("sends_too_large_a_result").await.result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted);
    assert_eq!(failure.details.unwrap(), json!({ "limit": "output_bytes", "allowed": MAX_OUTPUT_BYTES }));
}

#[tokio::test]
async fn a_too_long_failure_is_truncated() {
    let failure = outcome("fails_at_length").await.result.unwrap_err();
    assert!(failure.message.len() < 70_000 && failure.message.ends_with("..."), "{}", failure.message.len());
    assert_eq!(failure.details, None);
}

#[tokio::test]
async fn too_large_arguments_of_all_ops_together_are_refused() {
    let refused = outcome("sends_too_large_arguments_together").await.result.unwrap();
    assert_eq!(refused["err"]["name"], "ResourceExhausted", "{refused}");
}

/// Reads a request's body after an API call arrives, and reports its chunks.
#[derive(Default)]
struct LateReader(Notify);

#[async_trait]
impl HostOps for LateReader {
    async fn fetch(&self, _request: FetchRequest, body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        self.0.notified().await;
        let pieces: Vec<_> = body.unwrap().collect().await;
        let bytes: usize = pieces.iter().map(|piece| piece.as_ref().unwrap().len()).sum();
        Err(OpError::new("TypeError", format!("{bytes} bytes, pieces: {}", pieces.len())))
    }

    async fn api(&self, _call: ApiCall) -> Result<Value, OpError> {
        self.0.notify_one();
        Ok(Value::Null)
    }
}

#[tokio::test]
async fn a_body_of_single_bytes_is_held_in_one_piece() {
    let sandbox = start("sends_a_body_in_single_bytes").await;
    let outcome = sandbox.run(invocation(), Arc::new(LateReader::default()), CancellationToken::new()).await;
    assert_eq!(outcome.result.unwrap()["err"]["message"], "60000 bytes, pieces: 1");
    sandbox.close().await;
}

#[tokio::test]
async fn request_bodies_of_all_calls_together_are_limited() {
    let sandbox = start_with("opens_two_bodies", |options| options.upload_bytes = 0).await;
    let outcome = call(&sandbox).await;
    // The first body uses the call's own memory, which other calls cannot take.
    let refused = outcome.result.unwrap();
    assert_eq!(
        (&refused["op"], &refused["reply"]["err"]["name"]),
        (&json!(2), &json!("ResourceExhausted")),
        "{refused}"
    );
    sandbox.close().await;
}

#[tokio::test]
async fn more_of_a_body_than_was_granted_is_a_breach() {
    let message = breach("sends_more_of_a_body_than_was_granted").await;
    assert!(message.contains("more of a body than was granted"), "{message}");
}

#[tokio::test]
async fn a_worker_that_uses_cpu_after_its_call_is_stopped() {
    let sandbox = start("uses_cpu_after_its_call").await;
    let first = call(&sandbox).await;
    let process = first.result.unwrap();
    while std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let next = call(&sandbox).await;
    assert_ne!(next.result.unwrap(), process);
    sandbox.close().await;
}

#[tokio::test]
async fn a_worker_that_broke_the_protocol_after_a_call_gets_no_other() {
    let sandbox = start("sends_noise_after_its_call").await;
    let mut processes = Vec::new();
    for _ in 0..3 {
        let outcome = call(&sandbox).await;
        processes.push(outcome.result.unwrap());
    }
    sandbox.close().await;
    assert!(processes[0] != processes[1] && processes[1] != processes[2], "{processes:?}");
}

#[tokio::test]
async fn a_worker_that_closes_the_socket_and_keeps_running_is_killed() {
    let failure = outcome("closes_the_socket_and_keeps_running").await.result.unwrap_err();
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (ErrorCode::ExecutionFailed, "the tool's worker process was killed")
    );
}

#[tokio::test]
async fn a_worker_cannot_name_a_process_that_is_not_its_own() {
    let options = SandboxOptions { level: Level::Strict, ..options("breaches::names_the_first_process") };
    let refused = Sandbox::start(options).await.err().expect("no ceiling, no sandbox");
    assert!(refused.to_string().contains("process 1 is not a child of"), "{refused}");
}

/// Waits for the call and reports its start.
fn started() -> Option<File> {
    let mut socket = greeted(std::process::id())?;
    let call = read_frame(&mut socket).unwrap().unwrap();
    assert_eq!((call.kind, call.call), (Kind::Call, 1));
    send(&mut socket, Kind::Started, 1, 0, &[]);
    Some(socket)
}

fn report(fraction: f64, message: &str) -> Vec<u8> {
    encode(&ProgressUpdate { fraction: Some(fraction), message: message.into() }).unwrap().to_vec()
}

/// A frame of an unknown kind.
const NOISE: [u8; 13] = [9, 0, 0, 0, 77, 1, 0, 0, 0, 0, 0, 0, 0];

fn line() -> Vec<u8> {
    encode(&ConsoleLine { level: ConsoleLevel::Log, message: "again".into() }).unwrap().to_vec()
}

fn asking() -> Vec<u8> {
    encode(&ApiCall::GetBreadcrumb { id: "x".into() }).unwrap().to_vec()
}

/// A request with a body.
fn posting() -> Vec<u8> {
    let request = FetchRequest {
        method: "POST".into(),
        url: "https://example.com/".into(),
        headers: Vec::new(),
        redirect: Redirect::Follow,
    };
    encode(&FetchStart { request, has_body: true }).unwrap().to_vec()
}

/// The first frame of this kind.
fn first(socket: &mut File, kind: Kind) -> Frame {
    loop {
        let frame = read_frame(socket).unwrap().unwrap();
        if frame.kind == kind {
            return frame;
        }
    }
}

macro_rules! roles {
    ($($role:ident: $play:expr;)*) => {$(
        #[test]
        #[ignore = "a role for the tests above"]
        fn $role() {
            if let Some(mut socket) = started() {
                let play: fn(&mut File) = $play;
                play(&mut socket);
                stay(socket);
            }
        }
    )*};
}

roles! {
    floods_the_console: |socket| {
        for _ in 0..=MAX_CONSOLE_LINES {
            send(socket, Kind::Console, 1, 0, &line());
        }
    };
    writes_after_the_console_is_full: |socket| {
        send(socket, Kind::ConsoleFull, 1, 0, &[]);
        send(socket, Kind::Console, 1, 0, &line());
    };
    starts_too_many_ops: |socket| {
        for op in 1..=2 * MAX_OPS_IN_FLIGHT as u32 + 1 {
            send(socket, Kind::Api, 1, op, &asking());
        }
    };
    reuses_an_op_number: |socket| {
        send(socket, Kind::Api, 1, 7, &asking());
        send(socket, Kind::Api, 1, 7, &asking());
    };
    sends_too_large_arguments_together: |socket| {
        let record = json!({ "title": "x".repeat(6 << 20) });
        let ask = encode(&ApiCall::CreateBreadcrumb { record }).unwrap();
        for op in 1..=3 {
            send(socket, Kind::Api, 1, op, &ask);
        }
        let reply = read_frame(socket).unwrap().unwrap();
        assert_eq!((reply.kind, reply.op), (Kind::ApiReply, 3));
        done(socket, result(String::from_utf8(reply.payload.to_vec()).unwrap()));
    };
    sends_a_body_in_single_bytes: |socket| {
        send(socket, Kind::Fetch, 1, 1, &posting());
        for _ in 0..60_000 {
            send(socket, Kind::BodyChunk, 1, 1, b"x");
        }
        send(socket, Kind::BodyEnd, 1, 1, &encode(&BodyEnd { error: None }).unwrap());
        send(socket, Kind::Api, 1, 2, &asking());
        let reply = first(socket, Kind::FetchReply);
        done(socket, result(String::from_utf8(reply.payload.to_vec()).unwrap()));
    };
    opens_two_bodies: |socket| {
        for op in [1, 2] {
            send(socket, Kind::Fetch, 1, op, &posting());
        }
        let reply = first(socket, Kind::FetchReply);
        let refused = json!({ "op": reply.op, "reply": decode::<Value>(&reply.payload).unwrap() });
        done(socket, result(refused.to_string()));
    };
    sends_more_of_a_body_than_was_granted: |socket| {
        send(socket, Kind::Fetch, 1, 1, &posting());
        for _ in 0..3 {
            send(socket, Kind::BodyChunk, 1, 1, &vec![b'x'; 30_000]);
        }
    };
    sends_an_unreadable_op: |socket| send(socket, Kind::Api, 1, 1, b"{\"method\": \"rm -rf\"}");
    names_another_process_later: |socket| {
        let named = Frame::process(1);
        send(socket, Kind::Process, 1, 0, &named.payload);
    };
    starts_twice: |socket| send(socket, Kind::Started, 1, 0, &[]);
    sends_an_unrequested_code_cache: |socket| send(socket, Kind::CodeCache, 1, 0, b"cache");
    sends_frames_of_another_call: |socket| {
        for _ in 0..20_000 {
            send(socket, Kind::Console, 9, 0, &line());
        }
    };
    sends_noise: |socket| {
        use std::io::Write;
        let _ = socket.write_all(&NOISE);
    };
    floods_with_progress: |socket| {
        for _ in 0..20_000 {
            send(socket, Kind::Progress, 1, 0, &report(0.5, "on the way"));
        }
    };
    reports_progress_above_one: |socket| {
        send(socket, Kind::Progress, 1, 0, &report(1.5, ""));
    };
    sends_a_too_long_progress_message: |socket| {
        send(socket, Kind::Progress, 1, 0, &report(0.5, &"x".repeat(MAX_PROGRESS_BYTES + 1)));
    };
    sends_malformed_progress: |socket| {
        send(socket, Kind::Progress, 1, 0, b"{\"fraction\":");
    };
    sends_too_large_a_result: |socket| {
        let text = format!("\"{}\"", "x".repeat(MAX_OUTPUT_BYTES));
        done(socket, result(text));
    };
    fails_at_length: |socket| {
        let failed = json!({
            "kept": false,
            "result": { "failed": {
                "code": "ExecutionFailed",
                "message": "\u{e4}".repeat(1_000_000),
                "details": { "stack": "x".repeat(1_000_000) },
            } },
        });
        send(socket, Kind::Done, 1, 0, failed.to_string().as_bytes());
    };
    uses_cpu_after_its_call: |socket| {
        done(socket, result(std::process::id().to_string()));
        loop {
            std::hint::spin_loop();
        }
    };
    sends_noise_after_its_call: |socket| {
        use std::io::Write;
        let own_id = result(std::process::id().to_string());
        let done = Frame::new(Kind::Done, 1, 0, encode(&CallDone::fresh(own_id)).unwrap());
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &done).unwrap();
        bytes.extend(NOISE);
        // In one write, so that the noise has arrived when the next call looks for a worker.
        let _ = socket.write_all(&bytes);
    };
    closes_the_socket_and_keeps_running: |socket| {
        nix::sys::socket::shutdown(SOCKET_FD, nix::sys::socket::Shutdown::Both).unwrap();
        let _ = socket;
        std::thread::sleep(Duration::from_mins(1));
    };
}

#[test]
#[ignore = "a role for the tests above"]
fn names_the_first_process() {
    if let Some(socket) = greeted(1) {
        stay(socket);
    }
}
