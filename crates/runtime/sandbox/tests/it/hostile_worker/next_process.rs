//! A worker whose calls have their own processes: none can send frames for the next one.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::unistd::ForkResult;
use rcrt_sandbox::protocol::{CallDone, Frame, Kind, Ready, SOCKET_FD, StartMarker, encode, read_frame, write_frame};
use rcrt_sandbox::{Protection, ProtectionState, Sandbox};
use serde_json::Value;

use super::{call, done, greeted_behind, options, result, send, stay};

/// Runs two calls of one tenant in workers that play `role`, and returns their results.
async fn two_calls(role: &str) -> [Value; 2] {
    let sandbox = Sandbox::start(options(&format!("next_process::{role}"))).await.unwrap();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let outcome = call(&sandbox).await;
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
    done(&mut socket, result(std::process::id().to_string()));
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
    let mut command = Command::new("/bin/sleep");
    // Longer than any test. Standard error is that of the worker, which is read to the end.
    command.arg("600").stderr(Stdio::null());
    // SAFETY: between fork and exec there is one system call.
    #[allow(unsafe_code)]
    unsafe {
        // It ends with its parent.
        command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?));
    }
    command.spawn().unwrap()
}

fn ready(protections: &[Protection]) -> Frame {
    let ready = Ready { mark: StartMarker::new(MARK), protections: protections.to_vec() };
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
        assert!(StartMarker::new(MARK).skip_to(&mut from).unwrap());
        let call = read_frame(&mut from).unwrap().unwrap();
        assert_eq!((call.kind, call.call), (Kind::Call, 2));
        let read = result("\"after the mark\"");
        send(socket, Kind::Done, 2, 0, &encode(&CallDone::fresh(read)).unwrap());
    });
}

#[test]
#[ignore = "a role for the tests above"]
fn leaves_a_result_for_the_next_call() {
    use std::io::Write;
    has_children(|socket, mut child| {
        next(&mut child);
        let protection = Protection { name: "a protection".into(), state: ProtectionState::Applied };
        let forged = result("\"forged\"");
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
