//! Systems other than Linux: none of these restrictions is implemented there.

use std::os::unix::net::UnixStream;

use rcrt_sandbox::level::names;
use rcrt_sandbox::protocol::{Frame, Protection, write_frame};

use super::named;
use crate::WorkerError;

pub struct OwnProcFolder;

#[derive(Default)]
pub struct OwnMemory;

impl OwnProcFolder {
    pub fn own(self) -> OwnMemory {
        OwnMemory
    }
}

impl OwnMemory {
    pub fn data_bytes(&self) -> Option<u64> {
        None
    }
}

pub fn enter_child(_socket: &UnixStream) -> Result<(), String> {
    Ok(())
}

pub fn close_files(kept: OwnProcFolder) -> (OwnMemory, Result<(), String>) {
    (kept.own(), Err("only on Linux".into()))
}

pub fn seal() -> Result<(), String> {
    Ok(())
}

pub fn enter(socket: &mut UnixStream, _first_foreign: i32) -> Result<(Vec<Protection>, OwnProcFolder), WorkerError> {
    write_frame(socket, &Frame::process(std::process::id()))?;
    Ok((names::OF_THE_WORKER.map(|name| named(name, Err("only on Linux".into()))).into(), OwnProcFolder))
}
