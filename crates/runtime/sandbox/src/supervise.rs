//! One call on one worker, from its first frame to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use rcrt_breadcrumb::Limits;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::codec::FramedWrite;
use tokio_util::sync::CancellationToken;

use crate::call_end::CallEnd;
use crate::call_frames::{CallFrames, Failure, FrameAction};
use crate::call_limits::{CallLimits, Exceeded};
use crate::console::Console;
use crate::protocol::{CallDone, CallResult, Failed, Frame, FrameCodec, FrameError, Kind, MAX_OUTPUT_BYTES};
use crate::worker::Worker;
use crate::{HostOps, ProcessUsage, Script};

/// What the failure of a call that changes builtins says in addition.
const CHANGES_BUILTINS: &str = " (calls of one tool can share a process, in which builtins cannot be changed; from now on this version's calls \
     get a process each, as with \"isolation\": \"process\")";
/// The capacity of the queue of frames to the worker.
const MAX_QUEUED_FRAMES: usize = 16;
/// From how many bytes on a payload is not copied into the buffer of the socket's writer.
const LARGE_PAYLOAD: usize = 128 * 1024;

pub struct Watch<'a> {
    pub script: &'a Script,
    /// The call runs in the isolate that an earlier call of the same script kept.
    pub has_script: bool,
    /// The worker may keep the isolate for the script's next call.
    pub keeps: bool,
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

/// How a call ended, and what follows from it.
pub struct Ending {
    pub call_end: CallEnd,
    pub fate: WorkerFate,
    /// It failed because it changes what calls of one process share, and asked for nothing: it can
    /// be repeated in a process of its own.
    pub is_repeatable: bool,
}

/// Why the worker was asked to end the call.
#[derive(Clone, Copy)]
enum StopReason {
    Cancelled,
    Exceeded(Exceeded),
}

/// Sends `start` (the payload of the call) and supervises the call until it ends.
pub async fn supervise(worker: &mut Worker, start: bytes::Bytes, watch: Watch<'_>, console: &mut Console) -> Ending {
    let call = worker.next_call(!watch.has_script, watch.limits.memory_mb);
    let stop = CancellationToken::new();
    let (out, queue) = mpsc::channel(MAX_QUEUED_FRAMES);
    let mut frames = CallFrames::new(&watch, console, call, worker.has_child, out);
    let mut writer = pin!(write(&mut worker.sink, call, frames.first(start), queue, &stop));
    let mut is_writing = true;
    let mut limits = CallLimits::new(&worker.bounds, watch.limits);
    if watch.is_counted {
        limits.start();
    }
    let mut grace = pin!(sleep_until(Instant::now()));
    let mut stop_reason = None;

    let mut done = loop {
        tokio::select! {
            read = worker.frames.next() => match frames.take(read) {
                Ok(FrameAction::Continue) => {}
                Ok(FrameAction::Started) if watch.is_counted => {}
                Ok(FrameAction::Started) => limits.start(),
                Ok(FrameAction::Done(done)) => break Ok(done),
                Err(failure) => break Err(failure),
            },
            () = frames.ops.progress() => {}
            written = &mut writer, if is_writing => {
                is_writing = false;
                if written.is_err() {
                    break Err(Failure::Died);
                }
            }
            reason = wait_for_stop_reason(&watch, &mut limits), if stop_reason.is_none() => {
                stop_reason = Some(reason);
                if matches!(reason, StopReason::Exceeded(Exceeded::Memory)) {
                    // This process is past the engine's own limits, and would continue.
                    limits.kill();
                    break Err(Failure::Died);
                }
                stop.cancel();
                limits.lift_cpu_limit();
                grace.as_mut().reset(Instant::now() + watch.grace);
            }
            () = &mut grace, if stop_reason.is_some() => break Err(Failure::Died),
        }
    };

    let usage = watch.host.observer().map(|_| limits.usage());
    drop(limits);
    let has_begun_ops = frames.ops.has_begun;
    // Without ops there are no more writes; a partial write must be finished before the next call.
    drop(frames);
    if let (Some(observer), Some(usage)) = (watch.host.observer(), usage) {
        // A worker that died did not count them.
        let omitted = done.as_ref().map_or(0, |done| done.omitted_lines).max(u64::from(console.truncated));
        observer.ended(ProcessUsage { omitted_lines: omitted, ..usage });
    }
    if let Ok(CallDone { is_cache_refused: true, .. }) = &done {
        tracing::debug!(file = watch.script.file_name, "the engine refuses a script's code cache");
        watch.script.cache.refuse();
    }
    let is_refused_change = done.as_ref().is_ok_and(|done| done.is_refused_change);
    let is_repeatable = is_refused_change && !has_begun_ops && stop_reason.is_none();
    if is_refused_change && !is_repeatable {
        watch.script.sharing.refuse(&watch.script.file_name);
    }
    let is_whole = !is_writing || matches!(timeout(watch.grace, &mut writer).await, Ok(Ok(())));
    let fate = match &done {
        Ok(done) if done.spent => WorkerFate::Unusable,
        Ok(done) if is_whole && done.kept && watch.keeps => WorkerFate::Kept,
        Ok(_) if is_whole => WorkerFate::Fresh,
        _ => WorkerFate::Unusable,
    };
    if is_refused_change
        && has_begun_ops
        && let Ok(CallDone { result: CallResult::Failed(failed), .. }) = &mut done
    {
        // The next attempt has a process of its own.
        failed.is_retryable |= is_engines_error(failed);
        failed.message.push_str(CHANGES_BUILTINS);
    }
    Ending { call_end: call_end(stop_reason, done), fate, is_repeatable }
}

/// Whether the engine refused something that the tool did. Text of others, such as a server's, can
/// look like a refused change, and must not repeat a call that had effects.
fn is_engines_error(failed: &Failed) -> bool {
    let detail = |name| failed.details.as_ref().and_then(|details| details.get(name)).and_then(Value::as_str);
    detail("name") == Some("TypeError") || detail("cause").is_some_and(|cause| cause.starts_with("TypeError: "))
}

/// Returns when the call must end, whatever the worker does.
async fn wait_for_stop_reason(watch: &Watch<'_>, limits: &mut CallLimits<'_>) -> StopReason {
    tokio::select! {
        biased;
        () = either(watch.cancelled, watch.closed) => StopReason::Cancelled,
        limit = limits.exceeded() => StopReason::Exceeded(limit),
    }
}

fn call_end(stop_reason: Option<StopReason>, done: Result<CallDone, Failure>) -> CallEnd {
    match (stop_reason, done) {
        (Some(StopReason::Exceeded(Exceeded::Deadline)), _) => CallEnd::Timeout,
        (Some(StopReason::Exceeded(Exceeded::CpuBudget)), _) => CallEnd::CpuBudget,
        (Some(StopReason::Exceeded(Exceeded::Memory)), _) => CallEnd::Memory,
        (Some(StopReason::Cancelled), _) => CallEnd::Cancelled,
        (None, Ok(CallDone { result: CallResult::Ok(json), .. })) if json.get().len() > MAX_OUTPUT_BYTES => {
            CallEnd::OutputSize(json.get().len() as u64)
        }
        (None, Ok(done)) => CallEnd::Finished(done.result),
        (None, Err(Failure::Breach(breach))) => CallEnd::Breach(breach),
        (None, Err(Failure::Died)) => CallEnd::WorkerDied(None),
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
        feed(sink, frame).await?;
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
                feed(sink, frame).await?;
                while let Ok(frame) = queue.try_recv() {
                    feed(sink, frame).await?;
                }
                sink.flush().await?;
            }
        }
    }
}

/// Queues a frame to be sent with the next flush. A large payload is sent at once, without a copy.
async fn feed(sink: &mut FramedWrite<OwnedWriteHalf, FrameCodec>, frame: Frame) -> Result<(), FrameError> {
    if frame.payload.len() < LARGE_PAYLOAD {
        return sink.feed(frame).await;
    }
    sink.write_buffer_mut().extend_from_slice(&frame.header()?);
    sink.flush().await?;
    Ok(sink.get_mut().write_all(&frame.payload).await?)
}
