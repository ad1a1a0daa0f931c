//! What the frames of one call mean. The worker is not trusted: a frame that the protocol does not
//! allow ends the call.

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::ConsoleLine;
use crate::console::Console;
use crate::ops::Ops;
use crate::progress::ProgressReceiver;
use crate::protocol::{CallDone, Frame, FrameError, Kind, decode};
use crate::supervise::Watch;
use crate::upload::UploadCapacity;

/// How many frames of earlier calls are tolerated.
const MAX_LATE: usize = 10_000;

/// What the supervisor must do about a frame.
pub enum FrameAction {
    Continue,
    /// The tool's own time begins.
    Started,
    Done(CallDone),
}

/// Why a worker cannot finish its call.
pub enum Failure {
    /// It broke the protocol in this way.
    Breach(String),
    /// It closed its socket or was killed.
    Died,
}

impl From<String> for Failure {
    fn from(breach: String) -> Self {
        Self::Breach(breach)
    }
}

impl From<&str> for Failure {
    fn from(breach: &str) -> Self {
        Self::Breach(breach.into())
    }
}

pub struct CallFrames<'a> {
    watch: &'a Watch<'a>,
    console: &'a mut Console,
    call: u32,
    has_child: bool,
    pub ops: Ops,
    progress: ProgressReceiver,
    is_started: bool,
    wants_cache: bool,
    late: usize,
}

impl<'a> CallFrames<'a> {
    /// `out` takes the replies of the call's ops.
    pub fn new(
        watch: &'a Watch<'a>,
        console: &'a mut Console,
        call: u32,
        has_child: bool,
        out: mpsc::Sender<Frame>,
    ) -> Self {
        Self {
            watch,
            console,
            call,
            has_child,
            ops: Ops::new(watch.host.clone(), call, out, UploadCapacity::of_call(watch.uploads)),
            progress: ProgressReceiver::begin(),
            is_started: false,
            wants_cache: watch.wants_cache,
            late: 0,
        }
    }

    /// The frames that start the call, with the payload `start`.
    pub fn first(&self, start: Bytes) -> impl Iterator<Item = Frame> + use<> {
        let call = self.call;
        let cache = if self.watch.has_script { None } else { self.watch.script.cache.get() };
        let cache = cache.map(|cache| Frame::new(Kind::CodeCache, call, 0, cache));
        cache.into_iter().chain([Frame::new(Kind::Call, call, 0, start)])
    }

    /// Handles what was read from the socket.
    pub fn take(&mut self, read: Option<Result<Frame, FrameError>>) -> Result<FrameAction, Failure> {
        let frame = match read {
            Some(Ok(frame)) => frame,
            Some(Err(FrameError::Io(_))) | None => return Err(Failure::Died),
            Some(Err(error)) => return Err(Failure::Breach(error.to_string())),
        };
        if self.has_child && frame.kind == Kind::Ready {
            return Err("another process replaced it during the call".into());
        }
        // Frames of what an earlier call dropped may arrive late.
        if frame.call != self.call {
            self.late += 1;
            return if self.late > MAX_LATE {
                Err("it keeps sending frames of other calls".into())
            } else {
                Ok(FrameAction::Continue)
            };
        }
        match frame.kind {
            Kind::Done => {
                return decode(&frame.payload)
                    .map(FrameAction::Done)
                    .map_err(|_| "a result that cannot be read".into());
            }
            Kind::Console => {
                let line: ConsoleLine = decode(&frame.payload).map_err(|_| "a console line that cannot be read")?;
                self.console.add(line, self.watch.script)?;
                if let (Some(observer), Some(line)) = (self.watch.host.observer(), self.console.lines.last()) {
                    observer.console(line);
                }
            }
            Kind::Started if !self.is_started => {
                self.is_started = true;
                return Ok(FrameAction::Started);
            }
            // Only the first one, which the worker sends before any of the script's code runs.
            Kind::CodeCache if self.wants_cache => {
                self.wants_cache = false;
                self.watch.script.cache.put(frame.payload);
            }
            Kind::ConsoleFull => self.console.truncated = true,
            Kind::Progress => self.progress.take(&frame.payload, &*self.watch.host)?,
            _ => self.ops.take(&frame)?,
        }
        Ok(FrameAction::Continue)
    }
}
