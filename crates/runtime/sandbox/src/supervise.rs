//! One call on one worker, from its first frame to its end.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use rcrt_breadcrumb::Limits;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_util::codec::FramedWrite;
use tokio_util::sync::CancellationToken;

use crate::console::Console;
use crate::ending::Ending;
use crate::limits::{Meter, MeterCheck};
use crate::ops::Ops;
use crate::progress::ProgressReceiver;
use crate::protocol::{CallDone, CallResult, Frame, FrameCodec, FrameError, Kind, MAX_OUTPUT_BYTES, decode};
use crate::upload::UploadCapacity;
use crate::worker::Worker;
use crate::{ConsoleLine, HostOps, Script};

/// How long the worker may take to create an isolate, before the tool's own time begins.
const START: Duration = Duration::from_secs(30);
/// How many frames of earlier calls are tolerated.
const MAX_LATE: usize = 10_000;
/// The capacity of the queue of frames to the worker.
const OUTBOX: usize = 16;

pub struct Watch<'a> {
    pub script: &'a Script,
    /// The call runs in the isolate that an earlier call of the same script kept.
    pub has_script: bool,
    /// An isolate is ready: the call's time counts from its first frame.
    pub is_counted: bool,
    /// The worker sends the engine's code cache of the script.
    pub wants_cache: bool,
    pub host: Arc<dyn HostOps>,
    pub cancelled: &'a CancellationToken,
    /// The sandbox is being closed.
    pub closed: &'a CancellationToken,
    pub limits: &'a Limits,
    pub grace: Duration,
    /// Memory for request bodies that all calls share.
    pub uploads: &'a Arc<Semaphore>,
}

/// What happens to the worker after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerFate {
    /// It can take the next call; the isolate was kept.
    Kept,
    /// It can take the next call.
    Fresh,
    /// It must be killed.
    Unusable,
}

/// Why the worker was asked to end the call.
#[derive(Clone, Copy)]
enum StopReason {
    Deadline,
    CpuBudget,
    Memory,
    Cancelled,
}

/// Sends `start` (the payload of the call) and supervises the call until it ends.
pub async fn supervise(
    worker: &mut Worker,
    start: bytes::Bytes,
    watch: Watch<'_>,
    console: &mut Console,
) -> (Ending, WorkerFate) {
    let call = worker.next_call(!watch.has_script, watch.limits.memory_mb);
    let stop = CancellationToken::new();
    let (out, queue) = mpsc::channel(OUTBOX);
    let has_child = worker.has_child;
    let mut ops = Ops::new(watch.host.clone(), call, out, UploadCapacity::of_call(watch.uploads));
    let mut progress = ProgressReceiver::begin();
    let cache = if watch.has_script { None } else { watch.script.cache.get() };
    let cache = cache.map(|cache| Frame::new(Kind::CodeCache, call, 0, cache));
    let first = cache.into_iter().chain([Frame::new(Kind::Call, call, 0, start)]);
    let mut writer = pin!(write(&mut worker.sink, call, first, queue, &stop));
    let mut is_writing = true;
    let now = Instant::now();
    let mut deadline = pin!(sleep_until(now + if watch.is_counted { watch.limits.timeout() } else { START }));
    let mut grace = pin!(sleep_until(now));
    let mut look = pin!(sleep_until(now));
    let mut meter = if watch.is_counted { worker.bounds.begin(watch.limits) } else { None };
    if let Some(meter) = &meter {
        look.as_mut().reset(now + meter.first_look());
    }
    let mut stop_reason = None;
    let mut is_started = false;
    let mut wants_cache = watch.wants_cache;
    let mut late = 0;

    let done = loop {
        let reason = async {
            tokio::select! {
                biased;
                () = either(watch.cancelled, watch.closed) => StopReason::Cancelled,
                () = &mut deadline => StopReason::Deadline,
                why = spent(&mut meter, look.as_mut()) => why,
            }
        };
        tokio::select! {
            frame = worker.frames.next() => {
                let frame = match frame {
                    Some(Ok(frame)) => frame,
                    Some(Err(FrameError::Io(_))) | None => break Err(None),
                    Some(Err(error)) => break Err(Some(error.to_string())),
                };
                if has_child && frame.kind == Kind::Ready {
                    break Err(Some("another process replaced it during the call".into()));
                }
                // Frames of what an earlier call dropped may arrive late.
                if frame.call != call {
                    late += 1;
                    if late > MAX_LATE {
                        break Err(Some("it keeps sending frames of other calls".into()));
                    }
                    continue;
                }
                match frame.kind {
                    Kind::Done => match decode::<CallDone>(&frame.payload) {
                        Ok(done) => break Ok(done),
                        Err(_) => break Err(Some("a result that cannot be read".into())),
                    },
                    Kind::Console => match decode::<ConsoleLine>(&frame.payload) {
                        Ok(line) => if let Err(breach) = console.add(line, watch.script) {
                            break Err(Some(breach));
                        },
                        Err(_) => break Err(Some("a console line that cannot be read".into())),
                    },
                    Kind::Started if !is_started => {
                        is_started = true;
                        if !watch.is_counted {
                            let now = Instant::now();
                            deadline.as_mut().reset(now + watch.limits.timeout());
                            meter = worker.bounds.begin(watch.limits);
                            look.as_mut().reset(now + meter.as_ref().map(Meter::first_look).unwrap_or_default());
                        }
                    }
                    // Only the first one, which the worker sends before any of the script's code
                    // runs.
                    Kind::CodeCache if wants_cache => {
                        wants_cache = false;
                        watch.script.cache.put(frame.payload);
                    }
                    Kind::ConsoleFull => console.truncated = true,
                    Kind::Progress => if let Err(breach) = progress.take(&frame.payload, &*watch.host) {
                        break Err(Some(breach));
                    },
                    _ => if let Err(breach) = ops.take(&frame) {
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
            why = reason, if stop_reason.is_none() => {
                stop_reason = Some(why);
                if matches!(why, StopReason::Memory) {
                    // This process is past the engine's own limits, and would continue.
                    worker.bounds.kill();
                    break Err(None);
                }
                stop.cancel();
                // To end, the call needs the CPU.
                meter = None;
                worker.bounds.let_go();
                grace.as_mut().reset(Instant::now() + watch.grace);
            }
            () = &mut grace, if stop_reason.is_some() => break Err(None),
        }
    };

    drop(meter);
    // Without ops there are no more writes; a partial write must be finished before the next call.
    drop(ops);
    if let Ok(CallDone { is_cache_refused: true, .. }) = &done {
        tracing::debug!(file = watch.script.file_name, "the engine refuses a script's code cache");
        watch.script.cache.refuse();
    }
    let is_whole = !is_writing || matches!(timeout(watch.grace, &mut writer).await, Ok(Ok(())));
    let after = match &done {
        Ok(done) if done.spent => WorkerFate::Unusable,
        Ok(done) if is_whole && done.kept => WorkerFate::Kept,
        Ok(_) if is_whole => WorkerFate::Fresh,
        _ => WorkerFate::Unusable,
    };
    let ending = match (stop_reason, done) {
        (Some(StopReason::Deadline), _) => Ending::Timeout,
        (Some(StopReason::CpuBudget), _) => Ending::CpuBudget,
        (Some(StopReason::Memory), _) => Ending::Memory,
        (Some(StopReason::Cancelled), _) => Ending::Cancelled,
        (None, Ok(CallDone { result: CallResult::Ok(json), .. })) if json.get().len() > MAX_OUTPUT_BYTES => {
            Ending::OutputSize(json.get().len() as u64)
        }
        (None, Ok(done)) => Ending::Finished(done.result),
        (None, Err(Some(breach))) => Ending::Breach(breach),
        (None, Err(None)) => Ending::WorkerDied(None),
    };
    (ending, after)
}

/// Returns when the call's CPU time or memory is used up.
async fn spent(meter: &mut Option<Meter<'_>>, mut look: Pin<&mut Sleep>) -> StopReason {
    let Some(meter) = meter else { return std::future::pending().await };
    loop {
        look.as_mut().await;
        match meter.check() {
            MeterCheck::CpuExhausted => return StopReason::CpuBudget,
            MeterCheck::MemoryExceeded => return StopReason::Memory,
            MeterCheck::CheckAgain(wait) => look.as_mut().reset(Instant::now() + wait),
        }
    }
}

async fn either(one: &CancellationToken, other: &CancellationToken) {
    tokio::select! {
        () = one.cancelled() => {}
        () = other.cancelled() => {}
    }
}

/// Writes the call, then the replies of its ops, and the request to end it when `stop` is
/// cancelled.
async fn write(
    sink: &mut FramedWrite<OwnedWriteHalf, FrameCodec>,
    call: u32,
    first: impl Iterator<Item = Frame>,
    mut queue: mpsc::Receiver<Frame>,
    stop: &CancellationToken,
) -> Result<(), FrameError> {
    for frame in first {
        sink.feed(frame).await?;
    }
    sink.flush().await?;
    let mut is_cancel_sent = false;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled(), if !is_cancel_sent => {
                is_cancel_sent = true;
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
