//! Asks the runners of this process about a call before its request is written, and tells the one that took it on.

use breadcrumb::{Beginning, Birth, EarlyAnswer, Profiles, Standby, Visibility};
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::prepared::Prepared;
use crate::author::Author;
use crate::calls::complete;
use crate::store::Inner;

/// What a request is kept back for, for a moment: a runner may have its answer by then.
pub(super) struct Awaited {
    answer: EarlyAnswer,
    author: Author,
}

impl Awaited {
    /// `None` where no runner takes the call on early.
    pub(super) fn of(store: &Inner, owner_id: Uuid, request: &mut Prepared) -> Option<Self> {
        let early =
            ask(store, owner_id, request, |runner, tool, profiles, birth| runner.offer_early(tool, profiles, birth));
        let ((offer, answer), author) = early?;
        request.call.as_mut()?.offer = Some(offer);
        Some(Self { answer, author })
    }

    /// Gives the request its answer, where it comes.
    pub(super) async fn put_into(self, request: &mut Prepared) {
        let Self { answer, author } = self;
        if let Some(response) = answer.await.filter(|response| complete::check(response).is_ok())
            && let Some(call) = &mut request.call
        {
            // Of who asked, where it is for nobody else.
            let asker = request.agent.filter(|_| response.visibility == Visibility::Private);
            let creator = asker.map_or(author, |asker| author.acting_for(asker)).creator_of(&response);
            call.answer = Some(Box::new(Prepared::new(Uuid::now_v7(), response, Some(creator))));
        }
    }
}

/// Lets a runner take the call on as its request goes, where none did before.
pub(super) fn offer(store: &Inner, owner_id: Uuid, request: &mut Prepared) {
    if request.offer().is_none() {
        let offer = ask(store, owner_id, request, |runner, tool, profiles, birth| runner.offer(tool, profiles, birth));
        if let Some(((offer, _), call)) = offer.zip(request.call.as_mut()) {
            call.offer = Some(offer);
        }
    }
}

fn ask<T>(
    store: &Inner,
    owner_id: Uuid,
    request: &Prepared,
    offer: impl Fn(&dyn Standby, &str, &Profiles, &dyn Fn() -> Birth) -> Option<T>,
) -> Option<(T, Author)> {
    let has_ended = request.ttl.is_some_and(|end| end <= Utc::now());
    let call = request.call.as_ref().filter(|_| !has_ended)?;
    let birth = || Birth {
        request: request.as_written(owner_id, Utc::now()),
        profiles: call.profiles.clone(),
        time_left_ms: call.deadline_ms,
    };
    store.standbys.first(owner_id, |runner| offer(runner, &call.tool, &call.profiles, &birth))
}

/// The request is written: the runner that took its call on is told. Whether there is one.
pub(super) fn begin(request: &mut Prepared, at: Option<DateTime<Utc>>) -> bool {
    let Some(call) = &mut request.call else { return false };
    let Some((offer, at)) = call.offer.take().zip(at) else { return false };
    offer.begin(if call.answer.is_some() { Beginning::Answered } else { Beginning::Taken(at) });
    true
}
