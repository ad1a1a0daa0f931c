//! A call from when its request is made until that is written: it gets its place, computes where its tool lets it, and gives
//! its answer where that is waited for.

use std::pin::Pin;
use std::sync::Arc;

use breadcrumb::{NewBreadcrumb, UncommittedCall};
use chrono::{DateTime, Utc};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use crate::ahead::Prepared;
use crate::call::{Early, Progress, Taken};
use crate::calls::{Calls, PLACE_SOON};
use crate::finding::Refusal;
use crate::leases::Held;
use crate::places::Place;
use crate::standing_by::Waiting;
use crate::tool::Tool;

pub(crate) struct Unwritten {
    pub uncommitted: UncommittedCall,
    pub tool: Arc<Tool>,
    /// With one it begins its life running, without one claimed.
    pub place: Option<Place>,
    /// Until it has one.
    pub waiting: Option<Waiting>,
    pub asked: Instant,
    /// Its request is kept back for what comes of it.
    pub answer: Option<oneshot::Sender<NewBreadcrumb>>,
}

/// What a call hears of its request.
pub(crate) enum Written {
    Taken(DateTime<Utc>, Held),
    /// With the answer that it gave.
    Answered,
}

impl Unwritten {
    /// `None` where nothing is left to do: it was answered, or never was.
    pub async fn until_written(
        self,
        calls: &Calls,
        mut written: oneshot::Receiver<Written>,
    ) -> Option<(Taken, Option<Waiting>)> {
        let Self { mut uncommitted, tool, mut place, mut waiting, asked, mut answer } = self;
        let progress = match place {
            Some(_) => Progress::Begun { max_attempts: tool.definition.limits.max_attempts },
            None => Progress::Claimed,
        };
        let (mut ahead, mut early): (_, Option<Early>) = (None, None);
        let (mut is_to_begin, mut prepared) = (true, asked.elapsed());
        let given_up = sleep(PLACE_SOON);
        tokio::pin!(given_up);
        let (at, held) = loop {
            if is_to_begin && place.is_some() {
                (is_to_begin, waiting) = (false, None);
                let began = Instant::now();
                ahead = calls.caller.prepare_ahead(&mut uncommitted, tool.clone()).await;
                prepared = began.elapsed();
                if matches!(ahead, Some(Err(_))) {
                    place = None;
                }
            }
            if !is_to_begin && !is_computing(ahead.as_ref()) {
                // There is none, or it was said already.
                answer = None;
            }
            tokio::select! {
                biased;
                said = &mut written => match said {
                    Ok(Written::Taken(at, held)) => break (at, held),
                    Ok(Written::Answered) => {
                        if let Some(early) = early {
                            early.was_written();
                        }
                        return None;
                    }
                    Err(_) => {
                        never_was(ahead.as_ref());
                        return None;
                    }
                },
                () = calls.unwritten.cancelled() => {
                    never_was(ahead.as_ref());
                    return None;
                }
                // Others need the place while this one waits for the disk; and it may never be written.
                () = until_given_up(&calls.caller.stop, given_up.as_mut()), if is_to_begin || place.is_some() => {
                    (is_to_begin, place) = (false, None);
                    if let Some(Ok(prepared)) = &mut ahead
                        && !prepared.has_ended()
                    {
                        prepared.forget_run();
                    }
                }
                found = calls.places.wait(tool.name()), if is_to_begin => place = Some(found),
                ended = compute(&mut ahead) => if ended {
                    // However long the disk takes, it needs no worker any more.
                    place = None;
                    if let (Some(answer), Some(Ok(ready))) = (answer.take(), &ahead) {
                        early = calls.caller.early_answer(&uncommitted, ready, prepared);
                        early = early.filter(|early| answer.send(early.response.clone()).is_ok());
                    }
                }
            }
        };
        Some((Taken { claim: uncommitted.claim(at), held, place, progress, ahead }, waiting))
    }
}

fn is_computing(ahead: Option<&Result<Prepared, Refusal>>) -> bool {
    matches!(ahead, Some(Ok(prepared)) if prepared.is_computing())
}

/// What is still under way ends with it.
fn never_was(ahead: Option<&Result<Prepared, Refusal>>) {
    if let Some(Ok(prepared)) = ahead
        && prepared.has_ended()
    {
        prepared.tool.computed_in_vain();
    }
}

async fn until_given_up(stop: &CancellationToken, given_up: Pin<&mut Sleep>) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = given_up => {}
    }
}

/// Whether it has ended; never returns where nothing computes.
async fn compute(ahead: &mut Option<Result<Prepared, Refusal>>) -> bool {
    match ahead {
        Some(Ok(prepared)) if prepared.is_computing() => {
            prepared.compute().await;
            prepared.has_ended()
        }
        _ => std::future::pending().await,
    }
}
