//! Asks the runners in this process about a call before its request is written, and notifies the
//! one that reserved it.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Admission, LocalRunner, Profiles, SpeculativeResponse, UncommittedCall, Visibility};
use uuid::Uuid;

use super::prepared::PreparedRecord;
use crate::actor::Actor;
use crate::calls::complete;
use crate::store::Inner;

/// The request is held back for a short time: a runner may have its response by then.
pub(super) struct SpeculativeWait {
    answer: SpeculativeResponse,
    actor: Actor,
}

impl SpeculativeWait {
    /// `None` where no runner takes the call on early.
    pub(super) fn reserve(store: &Inner, owner_id: Uuid, request: &mut PreparedRecord) -> Option<Self> {
        let early = ask(store, owner_id, request, |runner, tool, profiles, uncommitted| {
            runner.reserve_speculative(tool, profiles, uncommitted)
        });
        let ((reservation, answer), actor) = early?;
        request.call.as_mut()?.reservation = Some(reservation);
        Some(Self { answer, actor })
    }

    /// Attaches the response to the request, if it comes in time.
    pub(super) async fn attach_to(self, request: &mut PreparedRecord) {
        let Self { answer, actor } = self;
        if let Some(response) = answer.await.filter(|response| complete::check(response).is_ok())
            && let Some(call) = &mut request.call
        {
            // A private response belongs to the agent that asked.
            let asker = request.agent.filter(|_| response.visibility == Visibility::Private);
            let creator = asker.map_or(actor, |asker| actor.acting_for(asker)).creator_of(&response);
            call.answer = Some(Box::new(PreparedRecord::new(Uuid::now_v7(), response, Some(creator))));
        }
    }
}

/// Lets a runner take the call on as its request goes, where none did before.
pub(super) fn reserve(store: &Inner, owner_id: Uuid, request: &mut PreparedRecord) {
    if request.reservation().is_none() {
        let reservation = ask(store, owner_id, request, |runner, tool, profiles, uncommitted| {
            runner.reserve(tool, profiles, uncommitted)
        });
        if let Some(((reservation, _), call)) = reservation.zip(request.call.as_mut()) {
            call.reservation = Some(reservation);
        }
    }
}

fn ask<T>(
    store: &Inner,
    owner_id: Uuid,
    request: &PreparedRecord,
    reserve: impl Fn(&dyn LocalRunner, &str, &Profiles, &dyn Fn() -> UncommittedCall) -> Option<T>,
) -> Option<(T, Actor)> {
    let has_ended = request.ttl.is_some_and(|end| end <= Utc::now());
    let call = request.call.as_ref().filter(|_| !has_ended)?;
    let uncommitted = || UncommittedCall {
        request: request.as_written(owner_id, Utc::now()),
        profiles: call.profiles.clone(),
        time_left_ms: call.deadline_ms,
    };
    store.local_runners.first_reservation(owner_id, |runner| reserve(runner, &call.tool, &call.profiles, &uncommitted))
}

/// The request is written: notifies the runner that reserved its call. Returns whether there is
/// one.
pub(super) fn confirm(request: &mut PreparedRecord, at: Option<DateTime<Utc>>) -> bool {
    let Some(call) = &mut request.call else { return false };
    let Some((reservation, at)) = call.reservation.take().zip(at) else { return false };
    reservation.confirm(if call.answer.is_some() { Admission::Answered } else { Admission::Claimed(at) });
    true
}
