//! Attempts with more than one system call.

use std::io;
use std::thread;

use nix::libc;

use super::attempt;
use crate::attempt::{Attempt, AttemptResult, call};
use crate::expected::Expected;

/// More than the jail allows of anything.
const MANY: i64 = 5000;
const MIB: usize = 1024 * 1024;

pub fn all() -> Vec<Attempt> {
    vec![
        // Standard input, output and error, the socket, and its own memory statistics.
        attempt("open descriptors", Expected::AtMost(5), || Ok(open_descriptors())),
        attempt("more descriptors than it has", Expected::AtMost(32), many_descriptors),
        attempt("a fork bomb", Expected::Killed, fork_bomb),
        attempt("a thread bomb", Expected::Returns(0), || Ok(thread_bomb())),
        attempt("a flood of signals to itself", Expected::AtMost(64), signal_bomb),
        attempt("memory until there is none", Expected::AtMost(600), || Ok(memory_bomb())),
        attempt("memory that is reserved and made writable later", Expected::AtMost(600), reserved_memory_bomb),
        attempt("memory that cannot be written any more", Expected::AtMost(600), unwritable_memory_bomb),
        attempt("memory for the tables of pages", Expected::AtMost(450), page_table_bomb),
        attempt("a file in memory, executed", Expected::Killed, execute_from_memory),
        attempt("environment variables", Expected::Returns(0), || Ok(std::env::vars_os().count() as i64)),
        attempt("being the first of its processes", Expected::AtMost(i64::from(i32::MAX)), || {
            call(libc::SYS_getpid, [0; 6])
        }),
        attempt("spinning with every signal blocked", Expected::TimesOut, spin),
        attempt("sleeping forever", Expected::TimesOut, sleep),
        attempt("flooding standard error", Expected::TimesOut, flood),
        attempt("an exit that reports success", Expected::Exits, || leave(0)),
        attempt("an exit that looks like a kill", Expected::Exits, || leave(128 + libc::SIGKILL)),
        attempt("a jump to nowhere", Expected::Exits, jump),
        attempt("endless recursion", Expected::Exits, || Ok(dig(0))),
        #[cfg(target_arch = "x86_64")]
        attempt("a 32-bit system call", Expected::Killed, old_call),
    ]
}

fn open_descriptors() -> i64 {
    let is_open = |number: &usize| call(libc::SYS_fcntl, [*number, libc::F_GETFD as usize, 0, 0, 0, 0]).is_ok();
    (0..MANY as usize).filter(is_open).count() as i64
}

fn many_descriptors() -> AttemptResult {
    let copy = || call(libc::SYS_fcntl, [3, libc::F_DUPFD_CLOEXEC as usize, 0, 0, 0, 0]);
    let mut last = 0;
    for _ in 0..MANY {
        match copy() {
            Ok(number) => last = number,
            Err(_) => break,
        }
    }
    for number in 4..=last {
        call(libc::SYS_close, [number as usize, 0, 0, 0, 0, 0])?;
    }
    Ok(last)
}

fn fork_bomb() -> AttemptResult {
    for _ in 0..MANY {
        call(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0])?;
    }
    Ok(MANY)
}

fn thread_bomb() -> i64 {
    let mut threads = Vec::new();
    let (end, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    for _ in 0..MANY {
        let wait = wait.clone();
        let body = move || drop(wait.lock().map(|wait| wait.recv()));
        match thread::Builder::new().stack_size(64 * 1024).spawn(body) {
            Ok(thread) => threads.push(thread),
            Err(_) => break,
        }
    }
    drop(end);
    let count = threads.len() as i64;
    for thread in threads {
        let _ = thread.join();
    }
    count
}

/// Pending real-time signals, of which the kernel queues each one.
fn signal_bomb() -> AttemptResult {
    let number = libc::SIGRTMIN() as usize;
    let mask = 1_u64 << (number - 1);
    call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, &raw const mask as usize, 0, 8, 0, 0])?;
    let (process, thread) = (call(libc::SYS_getpid, [0; 6])? as usize, call(libc::SYS_gettid, [0; 6])? as usize);
    let sent = |_: &i64| call(libc::SYS_tgkill, [process, thread, number, 0, 0, 0]).is_ok();
    Ok((0..MANY).take_while(sent).count() as i64)
}

/// In MiB; each page is touched, and freed at the end.
fn memory_bomb() -> i64 {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for _ in 0..MANY {
        let mut some = Vec::new();
        if some.try_reserve_exact(16 * MIB).is_err() {
            break;
        }
        some.resize(16 * MIB, 1);
        all.push(some);
    }
    16 * all.len() as i64
}

/// Address space can be reserved, but it does not become memory beyond the ceiling.
fn reserved_memory_bomb() -> AttemptResult {
    const SIZE: usize = 64 << 30;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    let start = call(libc::SYS_mmap, [0, SIZE, 0, flags, usize::MAX, 0])? as usize;
    let writable = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let mut done = 0;
    while done < SIZE && call(libc::SYS_mprotect, [start + done, 16 * MIB, writable, 0, 0, 0]).is_ok() {
        for page in (start + done..start + done + 16 * MIB).step_by(4096) {
            // SAFETY: the page was just made writable, and nothing else uses it.
            #[allow(unsafe_code)]
            unsafe {
                std::ptr::write_volatile(page as *mut u8, 1);
            }
        }
        done += 16 * MIB;
    }
    call(libc::SYS_munmap, [start, SIZE, 0, 0, 0, 0])?;
    Ok((done / MIB) as i64)
}

/// In MiB. Read-only memory does not count against the ceiling, even if it was written before.
fn unwritable_memory_bomb() -> AttemptResult {
    const SIZE: usize = 16 * MIB;
    let (flags, writable) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
    let mut all = Vec::new();
    while all.len() < 64 {
        let Ok(start) = call(libc::SYS_mmap, [0, SIZE, writable as usize, flags as usize, usize::MAX, 0]) else {
            break;
        };
        for page in (start as usize..start as usize + SIZE).step_by(4096) {
            // SAFETY: the pages are new and writable, and nothing else uses them.
            #[allow(unsafe_code)]
            unsafe {
                std::ptr::write_volatile(page as *mut u8, 1);
            }
        }
        call(libc::SYS_mprotect, [start as usize, SIZE, libc::PROT_READ as usize, 0, 0, 0])?;
        all.push(start as usize);
    }
    for start in &all {
        call(libc::SYS_munmap, [*start, SIZE, 0, 0, 0, 0])?;
    }
    Ok((all.len() * SIZE / MIB) as i64)
}

/// In MiB of page tables: each 2 MiB of address space that is read takes one page for its table.
fn page_table_bomb() -> AttemptResult {
    const SPAN: usize = 2 * MIB;
    const TABLES: usize = 200_000;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    let start = call(libc::SYS_mmap, [0, TABLES * SPAN, libc::PROT_READ as usize, flags, usize::MAX, 0])? as usize;
    for address in (start..start + TABLES * SPAN).step_by(SPAN) {
        // SAFETY: the memory was just mapped for reading.
        #[allow(unsafe_code)]
        unsafe {
            std::ptr::read_volatile(address as *const u8);
        }
    }
    call(libc::SYS_munmap, [start, TABLES * SPAN, 0, 0, 0, 0])?;
    Ok((TABLES * 4096 / MIB) as i64)
}

fn execute_from_memory() -> AttemptResult {
    let file = call(libc::SYS_memfd_create, [c"x".as_ptr() as usize, 0, 0, 0, 0, 0])? as usize;
    let text = b"#!/bin/sh\n";
    call(libc::SYS_write, [file, text.as_ptr() as usize, text.len(), 0, 0, 0])?;
    call(libc::SYS_execveat, [file, c"".as_ptr() as usize, 0, 0, libc::AT_EMPTY_PATH as usize, 0])
}

fn spin() -> AttemptResult {
    let all = u64::MAX;
    call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, &raw const all as usize, 0, 8, 0, 0])?;
    loop {
        std::hint::spin_loop();
    }
}

fn sleep() -> AttemptResult {
    loop {
        thread::park();
    }
}

fn flood() -> AttemptResult {
    loop {
        call(libc::SYS_write, [2, [b'x'; 4096].as_ptr() as usize, 4096, 0, 0, 0])?;
    }
}

fn leave(code: i32) -> AttemptResult {
    call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0])
}

fn jump() -> AttemptResult {
    // SAFETY: none: the write must crash the process.
    #[allow(unsafe_code)]
    unsafe {
        std::ptr::write_volatile(std::ptr::without_provenance_mut(8), 1_u8);
    }
    Err(io::Error::other("the write went through"))
}

#[allow(unconditional_recursion)]
fn dig(depth: i64) -> i64 {
    let room = std::hint::black_box([depth; 512]);
    dig(depth + 1) + room[0]
}

/// The kernel's 32-bit entry point: `socket` is number 359 there.
#[cfg(target_arch = "x86_64")]
fn old_call() -> AttemptResult {
    let result: i64;
    // SAFETY: the registers that the call changes are named.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::asm!(
            "push rbx",
            "mov ebx, 2",
            "int 0x80",
            "pop rbx",
            inout("rax") 359_i64 => result,
            in("rcx") 1,
            in("rdx") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if result < 0 { Err(io::Error::from_raw_os_error(-result as i32)) } else { Ok(result) }
}
