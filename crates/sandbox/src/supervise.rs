//! One call on one worker, from its first frame to its one ending.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::codec::FramedWrite;
use tokio_util::sync::CancellationToken;

use crate::console::Console;
use crate::ending::Ending;
use crate::ops::Ops;
use crate::protocol::{CallDone, Frame, FrameCodec, FrameError, Kind, decode};
use crate::worker::Worker;
use crate::{ConsoleLine, Script, World};

/// How long the worker may take to make an isolate, before the tool's own time begins.
const START: Duration = Duration::from_secs(30);
/// Frames on their way to the worker.
const OUTBOX: usize = 16;

pub struct Watch<'a> {
    pub script: &'a Script,
    /// The call runs in the isolate that an earlier call of the same script left.
    pub has_script: bool,
    pub world: Arc<dyn World>,
    pub cancelled: &'a CancellationToken,
    /// The sandbox is being closed.
    pub closed: &'a CancellationToken,
    pub timeout: Duration,
    pub grace: Duration,
}

/// What became of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It takes the next call; the isolate was kept.
    Kept,
    /// It takes the next call.
    Fresh,
    /// It must be killed.
    Unusable,
}

/// Why the worker was told to end the call.
#[derive(Clone, Copy)]
enum Told {
    Deadline,
    Cancelled,
}

/// Sends `start` (the payload of the call) and sees to the call's end.
pub async fn supervise(
    worker: &mut Worker,
    start: bytes::Bytes,
    watch: Watch<'_>,
    console: &mut Console,
) -> (Ending, After) {
    let call = worker.next_call(!watch.has_script);
    let stop = CancellationToken::new();
    let (out, queue) = mpsc::channel(OUTBOX);
    let mut ops = Ops::new(watch.world.clone(), call, out);
    let mut writer = pin!(write(&mut worker.sink, Frame::new(Kind::Call, call, 0, start), queue, &stop));
    let mut is_writing = true;
    let mut deadline = pin!(sleep_until(Instant::now() + START));
    let mut grace = pin!(sleep_until(Instant::now()));
    let mut told = None;
    let mut is_started = false;

    let done = loop {
        tokio::select! {
            frame = worker.frames.next() => {
                let frame = match frame {
                    Some(Ok(frame)) => frame,
                    Some(Err(FrameError::Io(_))) | None => break Err(None),
                    Some(Err(error)) => break Err(Some(error.to_string())),
                };
                // What an earlier call let go of may arrive late.
                if frame.call != call {
                    continue;
                }
                match frame.kind {
                    Kind::Done => match decode::<CallDone>(&frame.payload) {
                        Ok(done) => break Ok(done),
                        Err(error) => break Err(Some(format!("a result that cannot be read: {error}"))),
                    },
                    Kind::Console => match decode::<ConsoleLine>(&frame.payload) {
                        Ok(line) => console.add(line, watch.script),
                        Err(error) => break Err(Some(format!("a console line that cannot be read: {error}"))),
                    },
                    Kind::Started if !is_started => {
                        is_started = true;
                        deadline.as_mut().reset(Instant::now() + watch.timeout);
                    }
                    Kind::ConsoleFull => console.truncated = true,
                    _ => if let Err(breach) = ops.take(frame) {
                        break Err(Some(breach));
                    },
                }
            }
            () = ops.progress() => {}
            written = &mut writer, if is_writing => {
                is_writing = false;
                if written.is_err() {
                    break Err(None);
                }
            }
            () = either(watch.cancelled, watch.closed), if told.is_none() => {
                told = Some(Told::Cancelled);
                stop.cancel();
                grace.as_mut().reset(Instant::now() + watch.grace);
            }
            () = &mut deadline, if told.is_none() => {
                told = Some(Told::Deadline);
                stop.cancel();
                grace.as_mut().reset(Instant::now() + watch.grace);
            }
            () = &mut grace, if told.is_some() => break Err(None),
        }
    };

    // Without ops nobody writes any more; what is half written must be finished before the next call.
    drop(ops);
    let is_whole = !is_writing || matches!(timeout(watch.grace, &mut writer).await, Ok(Ok(())));
    let after = match &done {
        Ok(done) if is_whole && done.kept => After::Kept,
        Ok(_) if is_whole => After::Fresh,
        _ => After::Unusable,
    };
    let ending = match (told, done) {
        (Some(Told::Deadline), _) => Ending::Deadline,
        (Some(Told::Cancelled), _) => Ending::Cancelled,
        (None, Ok(done)) => Ending::Finished(done.result),
        (None, Err(Some(breach))) => Ending::Breach(breach),
        (None, Err(None)) => Ending::WorkerDied(None),
    };
    (ending, after)
}

async fn either(one: &CancellationToken, other: &CancellationToken) {
    tokio::select! {
        () = one.cancelled() => {}
        () = other.cancelled() => {}
    }
}

/// Writes the call, then what its ops answer, and in between the word to end it.
async fn write(
    sink: &mut FramedWrite<OwnedWriteHalf, FrameCodec>,
    first: Frame,
    mut queue: mpsc::Receiver<Frame>,
    stop: &CancellationToken,
) -> Result<(), FrameError> {
    let call = first.call;
    sink.send(first).await?;
    let mut is_told = false;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled(), if !is_told => {
                is_told = true;
                sink.send(Frame::new(Kind::Cancel, call, 0, Vec::new())).await?;
            }
            frame = queue.recv() => {
                let Some(frame) = frame else { return Ok(()) };
                sink.feed(frame).await?;
                while let Ok(frame) = queue.try_recv() {
                    sink.feed(frame).await?;
                }
                sink.flush().await?;
            }
        }
    }
}
