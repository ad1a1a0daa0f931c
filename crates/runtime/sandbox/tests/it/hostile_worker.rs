//! Workers that break the protocol. This test program plays them itself: the ignored tests are its
//! roles.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileTypeExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use nix::unistd::ForkResult;
use rcrt_breadcrumb::{ErrorCode, Isolation, Limits, ToolFailure};
use rcrt_sandbox::level;
use rcrt_sandbox::protocol::{
    Begin, BodyEnd, CallDone, CallResult, FetchStart, Frame, Hello, Kind, MAX_CONSOLE_LINES, MAX_OPS_IN_FLIGHT,
    MAX_OUTPUT_BYTES, MAX_PROGRESS_BYTES, Mark, Mode, PROTOCOL_VERSION, ProgressUpdate, Ready, SOCKET_FD, decode,
    encode, read_frame, write_frame,
};
use rcrt_sandbox::{
    ApiCall, BodyStream, CgroupUse, ConsoleLevel, ConsoleLine, FetchRequest, FetchResponse, HostOps, Invocation, Level,
    OpError, Outcome, Protection, ProtectionState, Redirect, RequestContext, Sandbox, SandboxOptions, Script, Task,
    WorkerCommand,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
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

/// One call in a worker that plays `role`.
async fn call(role: &str) -> Outcome {
    let sandbox = start(role).await;
    let outcome = sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await;
    sandbox.close().await;
    outcome
}

async fn start(role: &str) -> Sandbox {
    start_with(role, |_| {}).await
}

async fn start_with(role: &str, change: impl FnOnce(&mut SandboxOptions)) -> Sandbox {
    let worker = WorkerCommand {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", "--ignored", &format!("hostile_worker::{role}")].map(Into::into).to_vec(),
    };
    let mut options = SandboxOptions::new(worker);
    options.level = Level::Minimal;
    options.cgroups = CgroupUse::None;
    options.max_workers = 1;
    options.spares = 0;
    options.idle = Duration::from_hours(1);
    change(&mut options);
    Sandbox::start(options).await.unwrap()
}

fn invocation() -> Invocation {
    Invocation {
        task: Task::Call,
        owner_id: Uuid::from_u128(1),
        script: Arc::new(Script::new("tool.js".into(), String::new(), None)),
        input: Value::Null,
        request: RequestContext::default(),
        secrets: BTreeMap::new(),
        limits: Limits { timeout_ms: 20_000, ..Limits::default() },
        isolation: Isolation::Call,
        hrtime: false,
    }
}

async fn breach(role: &str) -> String {
    let failure: ToolFailure = call(role).await.result.expect_err(role);
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
    let failure = call("sends_too_large_a_result").await.result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted);
    assert_eq!(failure.details.unwrap(), json!({ "limit": "output_bytes", "allowed": MAX_OUTPUT_BYTES }));
}

#[tokio::test]
async fn a_too_long_failure_is_truncated() {
    let failure = call("fails_at_length").await.result.unwrap_err();
    assert!(failure.message.len() < 70_000 && failure.message.ends_with("..."), "{}", failure.message.len());
    assert_eq!(failure.details, None);
}

#[tokio::test]
async fn too_large_arguments_of_all_ops_together_are_refused() {
    let refused = call("sends_too_large_arguments_together").await.result.unwrap();
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
    let outcome = sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await;
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
    let first = sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await;
    let process = first.result.unwrap();
    while std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let next = sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await;
    assert_ne!(next.result.unwrap(), process);
    sandbox.close().await;
}

#[tokio::test]
async fn a_worker_that_broke_the_protocol_after_a_call_gets_no_other() {
    let sandbox = start("sends_noise_after_its_call").await;
    let mut processes = Vec::new();
    for _ in 0..3 {
        let outcome = sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await;
        processes.push(outcome.result.unwrap());
    }
    sandbox.close().await;
    assert!(processes[0] != processes[1] && processes[1] != processes[2], "{processes:?}");
}

#[tokio::test]
async fn a_worker_that_closes_the_socket_and_keeps_running_is_killed() {
    let failure = call("closes_the_socket_and_keeps_running").await.result.unwrap_err();
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (ErrorCode::ExecutionFailed, "the tool's worker process was killed")
    );
}

#[tokio::test]
async fn a_worker_cannot_name_a_process_that_is_not_its_own() {
    let mut options = SandboxOptions::new(WorkerCommand {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", "--ignored", "hostile_worker::names_the_first_process"].map(Into::into).to_vec(),
    });
    options.level = Level::Strict;
    options.cgroups = CgroupUse::None;
    let refused = Sandbox::start(options).await.err().expect("no ceiling, no sandbox");
    assert!(refused.to_string().contains("process 1 is not a child of"), "{refused}");
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

/// Waits for the call and reports its start.
fn started() -> Option<File> {
    let mut socket = greeted(std::process::id())?;
    let call = read_frame(&mut socket).unwrap().unwrap();
    assert_eq!((call.kind, call.call), (Kind::Call, 1));
    send(&mut socket, Kind::Started, 1, 0, &[]);
    Some(socket)
}

/// Ignores errors: the parent may have closed the socket.
fn send(socket: &mut File, kind: Kind, call: u32, op: u32, payload: &[u8]) {
    let _ = write_frame(socket, &Frame::new(kind, call, op, payload.to_vec()));
}

fn done(socket: &mut File, result: CallResult) {
    send(socket, Kind::Done, 1, 0, &encode(&CallDone::fresh(result)).unwrap());
}

/// Waits until the parent closes the socket.
fn stay(mut socket: File) {
    let _ = socket.read_to_end(&mut Vec::new());
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
        done(socket, CallResult::Ok(RawValue::from_string(String::from_utf8(reply.payload.to_vec()).unwrap()).unwrap()));
    };
    sends_a_body_in_single_bytes: |socket| {
        send(socket, Kind::Fetch, 1, 1, &posting());
        for _ in 0..60_000 {
            send(socket, Kind::BodyChunk, 1, 1, b"x");
        }
        send(socket, Kind::BodyEnd, 1, 1, &encode(&BodyEnd { error: None }).unwrap());
        send(socket, Kind::Api, 1, 2, &asking());
        let reply = first(socket, Kind::FetchReply);
        done(socket, CallResult::Ok(RawValue::from_string(String::from_utf8(reply.payload.to_vec()).unwrap()).unwrap()));
    };
    opens_two_bodies: |socket| {
        for op in [1, 2] {
            send(socket, Kind::Fetch, 1, op, &posting());
        }
        let reply = first(socket, Kind::FetchReply);
        let refused = json!({ "op": reply.op, "reply": decode::<Value>(&reply.payload).unwrap() });
        done(socket, CallResult::Ok(RawValue::from_string(refused.to_string()).unwrap()));
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
        done(socket, CallResult::Ok(RawValue::from_string(text).unwrap()));
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
        done(socket, CallResult::Ok(RawValue::from_string(std::process::id().to_string()).unwrap()));
        loop {
            std::hint::spin_loop();
        }
    };
    sends_noise_after_its_call: |socket| {
        use std::io::Write;
        let result = CallResult::Ok(RawValue::from_string(std::process::id().to_string()).unwrap());
        let done = Frame::new(Kind::Done, 1, 0, encode(&CallDone::fresh(result)).unwrap());
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

/// Runs two calls of one tenant in workers that play `role`, and returns their results.
async fn two_calls(role: &str) -> [Value; 2] {
    let mut options = SandboxOptions::new(WorkerCommand {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", "--ignored", &format!("hostile_worker::{role}")].map(Into::into).to_vec(),
    });
    options.level = Level::Minimal;
    options.cgroups = CgroupUse::None;
    options.max_workers = 1;
    options.spares = 0;
    options.idle = Duration::from_hours(1);
    let sandbox = Sandbox::start(options).await.unwrap();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let outcome = sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await;
        answers.push(outcome.result.unwrap());
    }
    sandbox.close().await;
    answers.try_into().unwrap()
}

#[tokio::test]
async fn no_process_can_send_frames_for_the_next_one() {
    // This kernel does not list the children of a process.
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return;
    }
    for role in ["pretends_to_be_the_next_process", "leaves_a_result_for_the_next_call", "loses_a_protection_later"] {
        let [first, second] = two_calls(role).await;
        assert!(first.is_u64() && second.is_u64() && first != second, "{role}: {first}, {second}");
    }
}

/// A worker with a child, which completes its first call. `lie` runs afterwards. It is a fork of
/// this program: the kernel lists children by the thread that forked them, and here that is not the
/// first one.
fn has_children(lie: impl FnOnce(&mut File, Child)) {
    let is_worker =
        std::fs::metadata(format!("/proc/self/fd/{SOCKET_FD}")).is_ok_and(|file| file.file_type().is_socket());
    if !is_worker {
        return;
    }
    // SAFETY: the fork has only this thread, and exits without unwinding into state of the others.
    #[allow(unsafe_code)]
    if let ForkResult::Parent { child } = unsafe { nix::unistd::fork() }.unwrap() {
        let _ = nix::sys::wait::waitpid(child, None);
        return;
    }
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).unwrap();
    let mut child = sleeper();
    let protections = || vec![Protection { name: "a protection".into(), state: ProtectionState::Applied }];
    let Some(mut socket) = greeted_behind(std::process::id(), protections, true) else {
        child.kill().unwrap();
        std::process::exit(0);
    };
    let call = read_frame(&mut socket).unwrap().unwrap();
    assert_eq!((call.kind, call.call), (Kind::Call, 1));
    done(&mut socket, CallResult::Ok(RawValue::from_string(std::process::id().to_string()).unwrap()));
    assert_eq!(read_frame(&mut socket).unwrap().unwrap().kind, Kind::Spent);
    lie(&mut socket, child);
    stay(socket);
    std::process::exit(0);
}

/// Kills the child and starts another one.
fn next(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
    *child = sleeper();
}

fn sleeper() -> Child {
    // It may outlive the worker, whose standard error is read to the end.
    Command::new("/bin/sleep").arg("20").stderr(Stdio::null()).spawn().unwrap()
}

fn ready(protections: &[Protection]) -> Frame {
    let ready = Ready { mark: Mark::new(MARK), protections: protections.to_vec() };
    Frame::new(Kind::Ready, 0, 0, encode(&ready).unwrap())
}

const MARK: [u8; 16] = *b"good as a random";

#[test]
#[ignore = "a role for the tests above"]
fn pretends_to_be_the_next_process() {
    has_children(|socket, _child| {
        let protection = Protection { name: "a protection".into(), state: ProtectionState::Applied };
        let _ = write_frame(socket, &ready(&[protection]));
    });
}

#[tokio::test]
async fn a_new_process_reads_only_after_its_mark() {
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return;
    }
    let [first, second] = two_calls("reads_after_its_mark").await;
    assert!(first.is_u64());
    assert_eq!(second, "after the mark");
}

#[test]
#[ignore = "a role for the tests above"]
fn reads_after_its_mark() {
    has_children(|socket, mut child| {
        next(&mut child);
        let protection = Protection { name: "a protection".into(), state: ProtectionState::Applied };
        let _ = write_frame(socket, &ready(&[protection]));
        let mut from = BufReader::new(socket.try_clone().unwrap());
        assert!(Mark::new(MARK).skip_to(&mut from).unwrap());
        let call = read_frame(&mut from).unwrap().unwrap();
        assert_eq!((call.kind, call.call), (Kind::Call, 2));
        let result = CallResult::Ok(RawValue::from_string("\"after the mark\"".into()).unwrap());
        send(socket, Kind::Done, 2, 0, &encode(&CallDone::fresh(result)).unwrap());
    });
}

#[test]
#[ignore = "a role for the tests above"]
fn leaves_a_result_for_the_next_call() {
    use std::io::Write;
    has_children(|socket, mut child| {
        next(&mut child);
        let protection = Protection { name: "a protection".into(), state: ProtectionState::Applied };
        let forged = CallResult::Ok(RawValue::from_string("\"forged\"".into()).unwrap());
        let forged = Frame::new(Kind::Done, 2, 0, encode(&CallDone::fresh(forged)).unwrap());
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &ready(&[protection])).unwrap();
        write_frame(&mut bytes, &forged).unwrap();
        let _ = socket.write_all(&bytes);
    });
}

#[test]
#[ignore = "a role for the tests above"]
fn loses_a_protection_later() {
    has_children(|socket, mut child| {
        next(&mut child);
        let protection = Protection { name: "a protection".into(), state: ProtectionState::Unavailable("gone".into()) };
        let _ = write_frame(socket, &ready(&[protection]));
    });
}

/// Starts a sandbox whose first worker has every protection, and whose later ones lack those in
/// `lacking`.
async fn start_with_lacking_workers(lacking: &[&str]) -> (Sandbox, std::path::PathBuf) {
    let mark = std::env::temp_dir().join(format!("lacking-{}", Uuid::new_v4()));
    // The last two arguments select no test: the role reads them.
    let arguments = ["--exact", "--ignored", "hostile_worker::loses_protections"].map(Into::into).into_iter();
    let lacking = lacking.join(",");
    let mut options = SandboxOptions::new(WorkerCommand {
        program: std::env::current_exe().unwrap(),
        args: arguments.chain([lacking.into(), mark.clone().into_os_string()]).collect(),
    });
    options.level = Level::Strict;
    options.cgroups = CgroupUse::None;
    options.max_workers = 1;
    options.spares = 0;
    options.idle = Duration::from_hours(1);
    (Sandbox::start(options).await.unwrap(), mark)
}

async fn in_the_first_and_a_later_worker(lacking: &[&str]) -> [Result<Value, ToolFailure>; 2] {
    let (sandbox, mark) = start_with_lacking_workers(lacking).await;
    let first = sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await;
    let other = Invocation { owner_id: Uuid::from_u128(2), ..invocation() };
    let second = sandbox.run(other, Arc::new(Silent), CancellationToken::new()).await;
    sandbox.close().await;
    std::fs::remove_file(mark).unwrap();
    [first.result, second.result]
}

#[tokio::test]
async fn strict_refuses_a_later_worker_that_lacks_a_required_protection() {
    let [first, second] = in_the_first_and_a_later_worker(&["network namespace", "seccomp"]).await;
    assert_eq!(first.unwrap(), "it ran");
    let failure = second.unwrap_err();
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, true), "{failure}");
    for word in ["seccomp", "no network", "the kernel refuses", "--sandbox minimal"] {
        assert!(failure.message.contains(word), "{failure}");
    }
}

#[tokio::test]
async fn a_later_worker_can_lack_an_optional_protection() {
    let [first, second] = in_the_first_and_a_later_worker(&["host name namespace"]).await;
    assert_eq!((first.unwrap(), second.unwrap()), (json!("it ran"), json!("it ran")));
}

#[test]
#[ignore = "a role for the tests above"]
fn loses_protections() {
    let protections = || {
        let words: Vec<String> = std::env::args().collect();
        let [.., lacking, mark] = words.as_slice() else { panic!("{words:?}") };
        let is_first = File::create_new(mark).is_ok();
        let lacks = |name: &str| !is_first && lacking.split(',').any(|one| one == name);
        let required = level::REQUIRED.iter().flat_map(|(_, by)| *by).copied();
        required
            .chain(["host name namespace"])
            .map(|name| Protection {
                name: name.into(),
                state: if lacks(name) {
                    ProtectionState::Unavailable("the kernel refuses".into())
                } else {
                    ProtectionState::Applied
                },
            })
            .collect()
    };
    let Some(mut socket) = greeted_behind(std::process::id(), protections, false) else { return };
    let Ok(Some(_)) = read_frame(&mut socket) else { return };
    send(&mut socket, Kind::Started, 1, 0, &[]);
    done(&mut socket, CallResult::Ok(RawValue::from_string("\"it ran\"".into()).unwrap()));
    stay(socket);
}
