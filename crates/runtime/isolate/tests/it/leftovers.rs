//! Data that was sent to a process and not read by it: the next process of its worker must not read
//! it.
//!
//! The test implements the parent's side itself, since the real parent would not send such data. It
//! simulates a process that was taken over and left bytes on the socket that its tool influenced.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rcrt_sandbox::protocol::{
    Begin, CallDone, CallResult, CallStart, ForkRequest, Frame, HEADER_BYTES, Kind, Mode, Ready, SOCKET_FD, decode,
    encode, read_frame, write_frame,
};
use rcrt_sandbox::{Isolation, Task};
use serde_json::value::RawValue;

use crate::fixture::{function, worker};

/// The read buffer size of a process.
const READ_AT_ONCE: usize = 16 * 1024;

/// A zygote, which is killed when this is dropped.
pub struct Zygote {
    pub process: Child,
    pub socket: UnixStream,
}

impl Zygote {
    fn start() -> Self {
        Self::start_as(Command::new(worker().program))
    }

    pub fn start_as(mut command: Command) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        command.env_clear().current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: the only function between fork and exec is async-signal-safe.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move || match nix::libc::dup2(theirs.as_raw_fd(), SOCKET_FD) {
                SOCKET_FD => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let process = command.spawn().unwrap();
        let mut socket = ours;
        write_frame(&mut socket, &Begin::frame(Mode::Zygote, false, 64).unwrap()).unwrap();
        Self { process, socket }
    }

    /// A worker that has said hello.
    fn worker(&mut self) -> UnixStream {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let stderr = std::io::stderr().as_fd().try_clone_to_owned().unwrap();
        ForkRequest { socket: OwnedFd::from(theirs), stderr }.send(&self.socket).unwrap();
        assert_eq!(next(&mut self.socket).kind, Kind::Process);
        write_frame(&mut ours, &Begin::frame(Mode::Serve, false, 64).unwrap()).unwrap();
        assert_eq!(next(&mut ours).kind, Kind::Process);
        assert_eq!(next(&mut ours).kind, Kind::Hello);
        ours
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn next(socket: &mut impl Read) -> Frame {
    read_frame(socket).unwrap().expect("the worker is running")
}

/// The frame of a call of a tool that returns `result`.
fn call(number: u32, result: &str) -> Frame {
    let start = CallStart {
        task: Task::Call,
        file_name: "tool.js".into(),
        javascript: Some(function(&format!("return {result:?}"))),
        input: RawValue::NULL.to_owned(),
        context: RawValue::from_string(r#"{"request":{"id":""},"secrets":{}}"#.into()).unwrap(),
        memory_mb: 64,
        isolation: Isolation::Process,
        hrtime: false,
        seed: None,
        is_counted: true,
        wants_cache: false,
    };
    Frame::new(Kind::Call, number, 0, encode(&start).unwrap())
}

/// The number of the next finished call, and its result.
fn finished(socket: &mut impl Read) -> (u32, String) {
    loop {
        let frame = next(socket);
        if frame.kind == Kind::Done {
            let done: CallDone = decode(&frame.payload).unwrap();
            let CallResult::Ok(result) = done.result else { panic!("{done:?}") };
            return (frame.call, result.get().to_owned());
        }
    }
}

fn ready(socket: &mut impl Read) -> Ready {
    let frame = next(socket);
    assert_eq!(frame.kind, Kind::Ready);
    decode(&frame.payload).unwrap()
}

fn spent() -> Frame {
    Frame::new(Kind::Spent, 0, 0, Vec::new())
}

/// The frames that make the process exit at once, and data after them that it does not read.
fn with_leftovers(left: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..2 {
        write_frame(&mut bytes, &spent()).unwrap();
    }
    // A reply that no op waits for fills the read buffer after those frames.
    let length = READ_AT_ONCE - bytes.len() - 4 - HEADER_BYTES;
    write_frame(&mut bytes, &Frame::new(Kind::ApiReply, 9, 1, vec![b' '; length])).unwrap();
    for frame in left {
        write_frame(&mut bytes, frame).unwrap();
    }
    bytes
}

#[test]
fn data_that_a_process_did_not_read_is_discarded() {
    let mut zygote = Zygote::start();
    let mut socket = zygote.worker();
    let mut marks = Vec::new();
    write_frame(&mut socket, &call(1, "first")).unwrap();
    assert_eq!(finished(&mut socket), (1, "\"first\"".into()));
    let forged = [Frame::new(Kind::CodeCache, 2, 0, vec![0; 100]), call(2, "forged")];
    // Half a frame, so that the next data would be read at an offset of the tool's choice.
    let mut half = with_leftovers(&[]);
    half.extend_from_slice(&with_leftovers(&forged)[..READ_AT_ONCE + 200]);
    let left = [with_leftovers(&forged), half, with_leftovers(&[spent(), spent(), spent()])];
    for (number, left) in (3..).zip(left) {
        socket.write_all(&left).unwrap();
        let Ready { mark, .. } = ready(&mut socket);
        assert!(!marks.contains(&mark), "two processes have the same mark");
        marks.push(mark);
        socket.write_all(mark.bytes()).unwrap();
        write_frame(&mut socket, &call(number, "honest")).unwrap();
        assert_eq!(finished(&mut socket), (number, "\"honest\"".into()));
    }
    // A process that never reads its mark exits with the socket and has run nothing.
    socket.write_all(&with_leftovers(&forged)).unwrap();
    let Ready { .. } = ready(&mut socket);
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "{} bytes", rest.len());
}
