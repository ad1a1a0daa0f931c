//! A program for this crate's tests that stands in for an engine that fell: it enters the very jail of a worker and
//! then does, as native code, what the call's input names. It is no part of `rcrt`.
//!
//! `takeover list` tells what can be named, and what must come of each, as JSON.
//!
//! `takeover copies` tells whether its random number generators count as unused, before and after one was used.
//!
//! `takeover behind CALLS PROGRAM` becomes PROGRAM on a kernel that refuses the system calls CALLS, as some machines do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[cfg(target_os = "linux")]
mod attempt;
#[cfg(target_os = "linux")]
mod attempts;
#[cfg(target_os = "linux")]
mod must;
#[cfg(target_os = "linux")]
mod refusing;
#[cfg(target_os = "linux")]
mod worker;

#[cfg(target_os = "linux")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        None => worker::run(),
        Some("list") => worker::list(),
        Some("copies") => copies(),
        Some("behind") => refusing::become_program(&arguments.next().unwrap(), &arguments.next().unwrap()),
        Some(other) => panic!("takeover knows no `{other}`"),
    }
}

#[cfg(target_os = "linux")]
fn copies() {
    use deno_crypto::rand::{RngCore, thread_rng};
    let before = isolate::generators::are_unused().unwrap();
    thread_rng().next_u32();
    let after = isolate::generators::are_unused().unwrap();
    println!("{before} {after}");
}

#[cfg(not(target_os = "linux"))]
fn main() {}
