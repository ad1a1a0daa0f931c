//! A program for this crate's tests. It plays a worker whose engine was exploited: it enters the
//! real jail of a worker and then does, as native code, what the call's input names. It is not part
//! of `rcrt`.
//!
//! `takeover list` prints the attempts and their expected outcomes as JSON.
//!
//! `takeover copies` prints whether its random number generator counts as unused, before and after
//! its use.
//!
//! `takeover used` is a real worker or zygote, whose random number generator was used before it
//! began.
//!
//! `takeover behind CALLS PROGRAM` becomes PROGRAM under a filter that refuses the system calls
//! CALLS, as some kernels do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[cfg(target_os = "linux")]
mod attempt;
#[cfg(target_os = "linux")]
mod attempts;
#[cfg(target_os = "linux")]
mod expected;
#[cfg(target_os = "linux")]
mod refusing;
#[cfg(target_os = "linux")]
mod worker;

#[cfg(target_os = "linux")]
use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        None => worker::run(),
        Some("list") => worker::list(),
        Some("copies") => copies(),
        Some("used") => return used(),
        Some("behind") => refusing::become_program(&arguments.next().unwrap(), &arguments.next().unwrap()),
        Some(other) => panic!("unknown command `{other}`; expected list, copies, used or behind"),
    }
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
fn used() -> ExitCode {
    use deno_crypto::rand::{RngCore, thread_rng};
    thread_rng().next_u32();
    rcrt_isolate::worker_main(rcrt_sandbox::protocol::SOCKET_FD)
}

#[cfg(target_os = "linux")]
fn copies() {
    use deno_crypto::rand::{RngCore, thread_rng};
    let before = rcrt_isolate::generators::are_unused().unwrap();
    thread_rng().next_u32();
    let after = rcrt_isolate::generators::are_unused().unwrap();
    println!("{before} {after}");
}

#[cfg(not(target_os = "linux"))]
fn main() {}
