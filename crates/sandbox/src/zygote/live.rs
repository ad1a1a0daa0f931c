//! The running zygote, as the thread that starts workers sees it.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use breadcrumb::Limits;
use tokio::net::unix::pipe::Receiver;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::CopiedProcess;
use crate::protocol::{Begin, ForkRequest, Kind, Mode, read_frame, write_frame};
use crate::worker::{LAST_WORDS, START, on_one_line};

/// All copies of one zygote have the same addresses: what a tool has learnt of them is of no use for longer than this.
const MOST_AGE: Duration = Duration::from_hours(1);

pub struct Zygote {
    child: Child,
    socket: UnixStream,
    since: Instant,
    /// A wait for all processes includes this one.
    _counted: TaskTrackerToken,
}

impl Zygote {
    /// Starts `command`, which has the snapshot and the other end of `ours`. It is killed when it is dropped.
    pub fn start(mut command: Command, ours: UnixStream, counted: TaskTrackerToken) -> io::Result<Self> {
        let child = command.spawn()?;
        let mut zygote = Self { child, socket: ours, since: Instant::now(), _counted: counted };
        zygote.socket.set_read_timeout(Some(START))?;
        let begin = Begin::frame(Mode::Zygote, true, Limits::default().memory_mb)?;
        // Where it has ended, the first order tells why.
        let _ = write_frame(&mut zygote.socket, &begin);
        Ok(zygote)
    }

    pub fn is_worn_out(&self) -> bool {
        self.since.elapsed() > MOST_AGE
    }

    /// Makes a worker that speaks on `socket`. Gives it with its standard error. Must be called within an asynchronous
    /// runtime, which watches the process's end.
    pub fn copy(&mut self, socket: &OwnedFd) -> io::Result<(CopiedProcess, Receiver)> {
        let (words, stderr) = io::pipe()?;
        let stderr = OwnedFd::from(stderr);
        ForkRequest { socket, stderr: &stderr }.send(&self.socket)?;
        let answer = read_frame(&mut self.socket).map_err(io::Error::other)?;
        let process = answer.filter(|frame| frame.kind == Kind::Process).and_then(|frame| frame.named_process());
        let process = process.ok_or_else(|| io::Error::other("no process was named"))?;
        Ok((CopiedProcess::take(process)?, Receiver::from_owned_fd(words.into())?))
    }

    /// Ends it. Gives what it said of its end.
    pub fn last_words(mut self) -> String {
        let mut words = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            // The copies have a standard error of their own.
            let _ = self.child.kill();
            let _ = stderr.take(LAST_WORDS).read_to_end(&mut words);
        }
        on_one_line(&words)
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
