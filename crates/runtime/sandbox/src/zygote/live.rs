//! The running zygote, as the thread that starts workers sees it.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rcrt_breadcrumb::Limits;
use tokio::net::unix::pipe::Receiver;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::CopiedProcess;
use crate::protocol::{Begin, ForkRequest, Kind, Mode, read_frame, write_frame};
use crate::worker::{START, STDERR_TAIL, on_one_line};

/// All workers of one zygote have the same addresses. What a tool learns about them is useless
/// after this time.
const MOST_AGE: Duration = Duration::from_hours(1);

pub struct Zygote {
    child: Child,
    socket: UnixStream,
    since: Instant,
    /// Waits for all processes include this one.
    _counted: TaskTrackerToken,
}

impl Zygote {
    /// Starts `command`, which has the snapshot and the other end of `ours`. It is killed when it
    /// is dropped.
    pub fn start(mut command: Command, ours: UnixStream, counted: TaskTrackerToken) -> io::Result<Self> {
        let child = command.spawn()?;
        let mut zygote = Self { child, socket: ours, since: Instant::now(), _counted: counted };
        zygote.socket.set_read_timeout(Some(START))?;
        let begin = Begin::frame(Mode::Zygote, true, Limits::default().memory_mb)?;
        // If it has exited, the first fork request reports why.
        let _ = write_frame(&mut zygote.socket, &begin);
        Ok(zygote)
    }

    pub fn is_exhausted(&self) -> bool {
        self.since.elapsed() > MOST_AGE
    }

    /// Forks a worker that uses `socket`. Returns it with its standard error. Must be called within
    /// an async runtime, which observes the process's exit.
    pub fn copy(&mut self, socket: &OwnedFd) -> io::Result<(CopiedProcess, Receiver)> {
        let (output, stderr) = io::pipe()?;
        let stderr = OwnedFd::from(stderr);
        ForkRequest { socket, stderr: &stderr }.send(&self.socket)?;
        let reply = read_frame(&mut self.socket).map_err(io::Error::other)?;
        let process = reply.filter(|frame| frame.kind == Kind::Process).and_then(|frame| frame.named_process());
        let process = process.ok_or_else(|| io::Error::other("no process was named"))?;
        Ok((CopiedProcess::take(process)?, Receiver::from_owned_fd(output.into())?))
    }

    /// Kills it. Returns its error output.
    pub fn last_words(mut self) -> String {
        let mut output = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            // The workers have their own standard error.
            let _ = self.child.kill();
            let _ = stderr.take(STDERR_TAIL).read_to_end(&mut output);
        }
        on_one_line(&output)
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
