//! To its parent this looks like a worker: it says hello, takes a call and sends a result. In
//! between it attacks.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rcrt_breadcrumb::ErrorCode;
use rcrt_isolate::Jailed;
use rcrt_sandbox::protocol::{
    CallDone, CallResult, CallStart, Failed, Frame, Hello, Kind, Mode, PROTOCOL_VERSION, SOCKET_FD, decode, encode,
    read_frame, write_frame,
};
use serde_json::{Value, json};

use crate::attempt::{Attempt, AttemptResult};
use crate::attempts;

pub fn run() {
    let Jailed { mut socket, begin, mut protections, .. } = rcrt_isolate::enter(SOCKET_FD).unwrap();
    if begin.mode == Mode::Snapshot {
        let reason = encode(&Some("there is no engine")).unwrap();
        return write_frame(&mut socket, &Frame::new(Kind::SnapshotEnd, 0, 0, reason)).unwrap();
    }
    let engine = Engine::start();
    rcrt_isolate::seal(&mut protections);
    let hello = Hello {
        protocol: PROTOCOL_VERSION,
        engine_version: "0".into(),
        isolates: 10_000,
        has_child: false,
        left_to_process: Vec::new(),
        protections,
    };
    write_frame(&mut socket, &Frame::new(Kind::Hello, 0, 0, encode(&hello).unwrap())).unwrap();
    while let Some(frame) = read_frame(&mut socket).unwrap() {
        if frame.kind == Kind::Call {
            serve(&mut socket, &engine, &frame);
        }
    }
}

fn serve(socket: &mut UnixStream, engine: &Engine, frame: &Frame) {
    attempts::CALL.store(frame.call, Ordering::Relaxed);
    let start: CallStart = decode(&frame.payload).unwrap();
    let name: String = serde_json::from_str(start.input.get()).unwrap();
    write_frame(socket, &Frame::new(Kind::Started, frame.call, 0, Vec::new())).unwrap();
    let answer = if name == "a good call" { Ok(json!("a good answer")) } else { engine.attack(&name) };
    let result = match answer {
        Ok(value) => CallResult::Ok(serde_json::value::to_raw_value(&value).unwrap()),
        Err(message) => CallResult::Failed(Failed {
            code: ErrorCode::ToolNotFound,
            message,
            details: None,
            reached: None,
            is_retryable: false,
        }),
    };
    let done = encode(&CallDone::fresh(result)).unwrap();
    write_frame(socket, &Frame::new(Kind::Done, frame.call, 0, done)).unwrap();
}

/// The thread on which an engine's code would run.
struct Engine {
    attempts: Sender<Attempt>,
    results: Receiver<AttemptResult>,
}

impl Engine {
    fn start() -> Self {
        let (attempts, line) = channel::<Attempt>();
        let (report, results) = channel();
        thread::spawn(move || line.iter().try_for_each(|attempt| report.send(attempt.run())));
        Self { attempts, results }
    }

    fn attack(&self, name: &str) -> Result<Value, String> {
        let attempt = attempts::all().into_iter().find(|attempt| attempt.name == name);
        let attempt = attempt.ok_or_else(|| format!("there is no attempt `{name}`"))?;
        self.attempts.send(attempt).map_err(|error| error.to_string())?;
        self.results.recv().map(|result| result_json(&result)).map_err(|error| format!("`{name}` panicked: {error}"))
    }
}

fn result_json(result: &AttemptResult) -> Value {
    match result {
        Ok(value) => json!({ "done": value }),
        Err(error) => json!({ "refused": error.raw_os_error(), "text": io::Error::to_string(error) }),
    }
}

/// Prints pairs of a name and its expected outcome.
#[allow(clippy::print_stdout)]
pub fn list() {
    let list: Vec<_> = attempts::all().into_iter().map(|attempt| (attempt.name, attempt.expected)).collect();
    println!("{}", json!(list));
}
