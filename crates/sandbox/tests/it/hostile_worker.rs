//! Workers that do what no worker does. This test program plays them itself: the ignored tests are its roles.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileTypeExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use breadcrumb::{ErrorCode, Isolation, Limits, ToolFailure};
use futures::StreamExt;
use nix::unistd::ForkResult;
use sandbox::level;
use sandbox::protocol::{
    Begin, BodyEnd, CallDone, CallResult, FetchStart, Frame, Hello, Kind, MAX_CONSOLE_LINES, MAX_OPS_IN_FLIGHT,
    MAX_OUTPUT_BYTES, MAX_PROGRESS_BYTES, Mark, Mode, PROTOCOL_VERSION, ProgressUpdate, Ready, SOCKET_FD, decode,
    encode, read_frame, write_frame,
};
use sandbox::{
    ApiCall, BodyStream, CgroupUse, ConsoleLevel, ConsoleLine, FetchRequest, FetchResponse, HostOps, Invocation, Level,
    OpError, Outcome, Protection, ProtectionState, Redirect, RequestContext, Sandbox, SandboxOptions, Script, Task,
    WorkerCommand,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Never answers.
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
async fn whoever_breaks_the_protocol_is_ended() {
    let broken = [
        ("floods_the_console", "more console lines"),
        ("talks_after_the_console_is_full", "more console lines"),
        ("asks_for_too_much_at_once", "more than 64 operations"),
        ("asks_twice_under_one_number", "operation 7 twice"),
        ("asks_what_nobody_can_read", "cannot be read"),
        ("names_another_process_later", "a frame Process"),
        ("starts_twice", "a frame Started"),
        ("tells_a_code_cache_that_nobody_wants", "a frame CodeCache"),
        ("keeps_talking_of_another_call", "other calls"),
        ("sends_noise", "unknown frame kind"),
        ("floods_with_progress", "more often than a call can"),
        ("is_further_than_the_end", "an invalid progress report"),
        ("tells_a_story_of_its_progress", "an invalid progress report"),
        ("tells_of_its_progress_in_noise", "progress report that cannot be read"),
    ];
    for (role, words) in broken {
        let message = breach(role).await;
        assert!(message.contains(words), "{role}: {message}");
    }
}

#[tokio::test]
async fn too_large_a_result_is_not_taken() {
    let failure = call("answers_too_much").await.result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted);
    assert_eq!(failure.details.unwrap(), json!({ "limit": "output_bytes", "allowed": MAX_OUTPUT_BYTES }));
}

#[tokio::test]
async fn a_failure_says_no_more_than_an_honest_one() {
    let failure = call("fails_at_length").await.result.unwrap_err();
    assert!(failure.message.len() < 70_000 && failure.message.ends_with("..."), "{}", failure.message.len());
    assert_eq!(failure.details, None);
}

#[tokio::test]
async fn operations_that_ask_with_too_much_together_are_refused() {
    let told = call("asks_with_too_much_together").await.result.unwrap();
    assert_eq!(told["err"]["name"], "ResourceExhausted", "{told}");
}

/// Reads a request's body when it is asked for something else, and tells what it consisted of.
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
async fn request_bodies_of_all_calls_together_have_a_bound() {
    let sandbox = start_with("opens_two_bodies", |options| options.upload_bytes = 0).await;
    let outcome = sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await;
    // The first is the call's own: nobody else can take its room.
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
async fn a_worker_that_keeps_busy_after_its_call_is_ended() {
    let sandbox = start("burns_after_its_call").await;
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
async fn no_call_meets_a_worker_that_broke_the_protocol_after_another() {
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
async fn a_worker_that_hangs_up_and_lives_on_is_killed() {
    let failure = call("hangs_up_and_lives_on").await.result.unwrap_err();
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (ErrorCode::ExecutionFailed, "the tool's worker process was killed")
    );
}

#[tokio::test]
async fn a_worker_that_names_a_process_of_somebody_else_gets_no_hold_on_it() {
    let mut options = SandboxOptions::new(WorkerCommand {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", "--ignored", "hostile_worker::names_the_first_process"].map(Into::into).to_vec(),
    });
    options.level = Level::Strict;
    options.cgroups = CgroupUse::None;
    let refused = Sandbox::start(options).await.err().expect("no ceiling, no sandbox");
    assert!(refused.to_string().contains("process 1 is not a child of"), "{refused}");
}

/// The worker's side: greets. `None` when nobody started this as a worker.
fn greeted(process: u32) -> Option<File> {
    greeted_behind(process, Vec::new, false)
}

/// Greets, and tells of `walls`, and whether tool code runs in a child.
fn greeted_behind(process: u32, walls: impl FnOnce() -> Vec<Protection>, has_child: bool) -> Option<File> {
    let kind = std::fs::metadata(format!("/proc/self/fd/{SOCKET_FD}")).ok()?.file_type();
    if !kind.is_socket() || std::env::vars_os().next().is_some() {
        return None;
    }
    // SAFETY: it is the socket that the parent handed over, and nobody else in this process uses it.
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
        protections: walls(),
    };
    send(&mut socket, Kind::Hello, 0, 0, &encode(&hello).unwrap());
    Some(socket)
}

/// Waits for the call and says that it began.
fn started() -> Option<File> {
    let mut socket = greeted(std::process::id())?;
    let call = read_frame(&mut socket).unwrap().unwrap();
    assert_eq!((call.kind, call.call), (Kind::Call, 1));
    send(&mut socket, Kind::Started, 1, 0, &[]);
    Some(socket)
}

/// The parent may have had enough.
fn send(socket: &mut File, kind: Kind, call: u32, op: u32, payload: &[u8]) {
    let _ = write_frame(socket, &Frame::new(kind, call, op, payload.to_vec()));
}

fn done(socket: &mut File, result: CallResult) {
    send(socket, Kind::Done, 1, 0, &encode(&CallDone::fresh(result)).unwrap());
}

/// Stays until the parent hangs up.
fn stay(mut socket: File) {
    let _ = socket.read_to_end(&mut Vec::new());
}

fn word(fraction: f64, message: &str) -> Vec<u8> {
    encode(&ProgressUpdate { fraction: Some(fraction), message: message.into() }).unwrap().to_vec()
}

/// A frame of a kind that nobody knows.
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
    talks_after_the_console_is_full: |socket| {
        send(socket, Kind::ConsoleFull, 1, 0, &[]);
        send(socket, Kind::Console, 1, 0, &line());
    };
    asks_for_too_much_at_once: |socket| {
        for op in 1..=2 * MAX_OPS_IN_FLIGHT as u32 + 1 {
            send(socket, Kind::Api, 1, op, &asking());
        }
    };
    asks_twice_under_one_number: |socket| {
        send(socket, Kind::Api, 1, 7, &asking());
        send(socket, Kind::Api, 1, 7, &asking());
    };
    asks_with_too_much_together: |socket| {
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
        let told = json!({ "op": reply.op, "reply": decode::<Value>(&reply.payload).unwrap() });
        done(socket, CallResult::Ok(RawValue::from_string(told.to_string()).unwrap()));
    };
    sends_more_of_a_body_than_was_granted: |socket| {
        send(socket, Kind::Fetch, 1, 1, &posting());
        for _ in 0..3 {
            send(socket, Kind::BodyChunk, 1, 1, &vec![b'x'; 30_000]);
        }
    };
    asks_what_nobody_can_read: |socket| send(socket, Kind::Api, 1, 1, b"{\"method\": \"rm -rf\"}");
    names_another_process_later: |socket| {
        let named = Frame::process(1);
        send(socket, Kind::Process, 1, 0, &named.payload);
    };
    starts_twice: |socket| send(socket, Kind::Started, 1, 0, &[]);
    tells_a_code_cache_that_nobody_wants: |socket| send(socket, Kind::CodeCache, 1, 0, b"cache");
    keeps_talking_of_another_call: |socket| {
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
            send(socket, Kind::Progress, 1, 0, &word(0.5, "on the way"));
        }
    };
    is_further_than_the_end: |socket| {
        send(socket, Kind::Progress, 1, 0, &word(1.5, ""));
    };
    tells_a_story_of_its_progress: |socket| {
        send(socket, Kind::Progress, 1, 0, &word(0.5, &"x".repeat(MAX_PROGRESS_BYTES + 1)));
    };
    tells_of_its_progress_in_noise: |socket| {
        send(socket, Kind::Progress, 1, 0, b"{\"fraction\":");
    };
    answers_too_much: |socket| {
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
    burns_after_its_call: |socket| {
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
        // At once, so that the noise is there when the next call looks for a worker.
        let _ = socket.write_all(&bytes);
    };
    hangs_up_and_lives_on: |socket| {
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

/// Two calls of one tenant in workers that play `role`: what either was answered.
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
async fn no_process_speaks_for_the_one_after_it() {
    // A kernel that does not tell which children a process has.
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return;
    }
    for role in ["says_that_it_is_the_next_process", "leaves_an_answer_for_the_next_call", "loses_a_wall_on_the_way"] {
        let [first, second] = two_calls(role).await;
        assert!(first.is_u64() && second.is_u64() && first != second, "{role}: {first}, {second}");
    }
}

/// A worker with a child, which answers its first call well. `lie` comes afterwards. It is a fork of this program: a
/// process's children are listed by the thread that has them, and here that is not the first one.
fn has_children(lie: impl FnOnce(&mut File, Child)) {
    let is_worker =
        std::fs::metadata(format!("/proc/self/fd/{SOCKET_FD}")).is_ok_and(|file| file.file_type().is_socket());
    if !is_worker {
        return;
    }
    // SAFETY: the fork has this thread alone, and ends without unwinding into what the others left.
    #[allow(unsafe_code)]
    if let ForkResult::Parent { child } = unsafe { nix::unistd::fork() }.unwrap() {
        let _ = nix::sys::wait::waitpid(child, None);
        return;
    }
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).unwrap();
    let mut child = sleeper();
    let wall = || vec![Protection { name: "a wall".into(), state: ProtectionState::Applied }];
    let Some(mut socket) = greeted_behind(std::process::id(), wall, true) else {
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

/// The child ends, and another takes its place.
fn next(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
    *child = sleeper();
}

fn sleeper() -> Child {
    // It may outlive the worker, whose last words are waited for.
    Command::new("/bin/sleep").arg("20").stderr(Stdio::null()).spawn().unwrap()
}

fn ready(walls: &[Protection]) -> Frame {
    let ready = Ready { mark: Mark::new(MARK), protections: walls.to_vec() };
    Frame::new(Kind::Ready, 0, 0, encode(&ready).unwrap())
}

const MARK: [u8; 16] = *b"good as a random";

#[test]
#[ignore = "a role for the tests above"]
fn says_that_it_is_the_next_process() {
    has_children(|socket, _child| {
        let wall = Protection { name: "a wall".into(), state: ProtectionState::Applied };
        let _ = write_frame(socket, &ready(&[wall]));
    });
}

#[tokio::test]
async fn a_new_process_is_told_where_its_own_frames_begin() {
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return;
    }
    let [first, second] = two_calls("reads_behind_its_mark").await;
    assert!(first.is_u64());
    assert_eq!(second, "behind the mark");
}

#[test]
#[ignore = "a role for the tests above"]
fn reads_behind_its_mark() {
    has_children(|socket, mut child| {
        next(&mut child);
        let wall = Protection { name: "a wall".into(), state: ProtectionState::Applied };
        let _ = write_frame(socket, &ready(&[wall]));
        let mut from = BufReader::new(socket.try_clone().unwrap());
        assert!(Mark::new(MARK).skip_to(&mut from).unwrap());
        let call = read_frame(&mut from).unwrap().unwrap();
        assert_eq!((call.kind, call.call), (Kind::Call, 2));
        let result = CallResult::Ok(RawValue::from_string("\"behind the mark\"".into()).unwrap());
        send(socket, Kind::Done, 2, 0, &encode(&CallDone::fresh(result)).unwrap());
    });
}

#[test]
#[ignore = "a role for the tests above"]
fn leaves_an_answer_for_the_next_call() {
    use std::io::Write;
    has_children(|socket, mut child| {
        next(&mut child);
        let wall = Protection { name: "a wall".into(), state: ProtectionState::Applied };
        let forged = CallResult::Ok(RawValue::from_string("\"forged\"".into()).unwrap());
        let forged = Frame::new(Kind::Done, 2, 0, encode(&CallDone::fresh(forged)).unwrap());
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &ready(&[wall])).unwrap();
        write_frame(&mut bytes, &forged).unwrap();
        let _ = socket.write_all(&bytes);
    });
}

#[test]
#[ignore = "a role for the tests above"]
fn loses_a_wall_on_the_way() {
    has_children(|socket, mut child| {
        next(&mut child);
        let wall = Protection { name: "a wall".into(), state: ProtectionState::Unavailable("gone".into()) };
        let _ = write_frame(socket, &ready(&[wall]));
    });
}

/// A sandbox whose first worker has every wall, and whose later ones lack those that are named in `lacking`.
async fn start_where_walls_fall(lacking: &[&str]) -> (Sandbox, std::path::PathBuf) {
    let mark = std::env::temp_dir().join(format!("falling-{}", Uuid::new_v4()));
    // The last words select no test: the role reads them.
    let words = ["--exact", "--ignored", "hostile_worker::loses_walls"].map(Into::into).into_iter();
    let lacking = lacking.join(",");
    let mut options = SandboxOptions::new(WorkerCommand {
        program: std::env::current_exe().unwrap(),
        args: words.chain([lacking.into(), mark.clone().into_os_string()]).collect(),
    });
    options.level = Level::Strict;
    options.cgroups = CgroupUse::None;
    options.max_workers = 1;
    options.spares = 0;
    options.idle = Duration::from_hours(1);
    (Sandbox::start(options).await.unwrap(), mark)
}

async fn in_the_first_and_a_later_worker(lacking: &[&str]) -> [Result<Value, ToolFailure>; 2] {
    let (sandbox, mark) = start_where_walls_fall(lacking).await;
    let first = sandbox.run(invocation(), Arc::new(Silent), CancellationToken::new()).await;
    let other = Invocation { owner_id: Uuid::from_u128(2), ..invocation() };
    let second = sandbox.run(other, Arc::new(Silent), CancellationToken::new()).await;
    sandbox.close().await;
    std::fs::remove_file(mark).unwrap();
    [first.result, second.result]
}

#[tokio::test]
async fn strict_runs_nothing_in_a_later_worker_that_lacks_a_required_wall() {
    let [first, second] = in_the_first_and_a_later_worker(&["network namespace", "seccomp"]).await;
    assert_eq!(first.unwrap(), "it ran");
    let failure = second.unwrap_err();
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, true), "{failure}");
    for word in ["seccomp", "no network", "the kernel refuses", "--sandbox minimal"] {
        assert!(failure.message.contains(word), "{failure}");
    }
}

#[tokio::test]
async fn a_later_worker_may_lack_a_wall_that_strict_does_not_require() {
    let [first, second] = in_the_first_and_a_later_worker(&["host name namespace"]).await;
    assert_eq!((first.unwrap(), second.unwrap()), (json!("it ran"), json!("it ran")));
}

#[test]
#[ignore = "a role for the tests above"]
fn loses_walls() {
    let walls = || {
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
    let Some(mut socket) = greeted_behind(std::process::id(), walls, false) else { return };
    let Ok(Some(_)) = read_frame(&mut socket) else { return };
    send(&mut socket, Kind::Started, 1, 0, &[]);
    done(&mut socket, CallResult::Ok(RawValue::from_string("\"it ran\"".into()).unwrap()));
    stay(socket);
}
