//! Fires tasks when they are due. Any number of schedulers can work on one tenant: each fire
//! happens once.
//!
//! A scheduler follows the store's events, so it learns at once of new and changed schedules. It
//! sleeps until the next due time. All schedules are read at the start, after the event stream
//! broke, and every few minutes. If they cannot be read, the known ones continue, and the read is
//! retried after a pause.

mod cache;
mod firing;
mod step;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use futures::stream;
use rcrt_breadcrumb::{Breadcrumbs, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Clock, Settings, records};
use cache::ScheduleCache;
use firing::ScheduleCheck;

/// Concurrent fires.
const WIDTH: usize = 8;
/// How long a fire in progress may take to finish when the scheduler stops. Another scheduler, or
/// the next start, finishes the rest.
const DRAIN: Duration = Duration::from_secs(5);
/// Pauses between attempts to follow the events.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

pub struct Scheduler {
    store: Arc<dyn Breadcrumbs>,
    clock: Arc<dyn Clock>,
    settings: Settings,
}

impl Scheduler {
    /// `store` is the store as the runner's agent sees it. All schedulers of a tenant must act as
    /// the same agent, because that agent's idempotency keys ensure that each fire happens once.
    pub fn new(store: Arc<dyn Breadcrumbs>, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        Self { store, clock, settings }
    }

    /// Runs until it is stopped. If the store is unavailable, it waits.
    pub async fn run(self, stop: CancellationToken) {
        let mut cache = ScheduleCache::default();
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            let ended = tokio::select! {
                ended = self.follow(&mut cache, &stop) => ended,
                () = cut_off(&stop) => return,
            };
            let Err(error) = ended else { return };
            pause = if began.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            tracing::warn!(%error, "schedules cannot be followed; retrying");
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Returns `Ok` when stopped.
    async fn follow(&self, cache: &mut ScheduleCache, stop: &CancellationToken) -> Result<(), StoreError> {
        let begin = async {
            let latest = self.store.latest_event().await?;
            let events = self.store.events(Some(latest)).await?;
            Ok::<_, StoreError>((events, self.refresh(cache).await))
        };
        let (mut events, mut look_again) = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            begun = begin => begun?,
        };
        loop {
            let wake = cache.wake().map_or(look_again, |wake| wake.min(look_again));
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                event = events.next() => match event {
                    Some(event) => cache.apply_event(&*event?, self.clock.now(), &self.settings),
                    None => return Err(StoreError::Unavailable("the events ended".into())),
                },
                () = self.clock.sleep_until(wake) => {
                    // Before the list, which may take long in the store.
                    self.check_due(cache).await;
                    if self.clock.now() >= look_again {
                        look_again = self.refresh(cache).await;
                    }
                }
            }
        }
    }

    /// Reads all schedules and returns when to do it again. If the list fails, the cache stays
    /// unchanged.
    async fn refresh(&self, cache: &mut ScheduleCache) -> DateTime<Utc> {
        let pause = match self.read_all(cache).await {
            Ok(()) => self.settings.look_every,
            Err(error) => {
                tracing::warn!(%error, "schedules cannot be listed; retrying");
                self.settings.retry_after
            }
        };
        self.clock.now() + pause
    }

    async fn read_all(&self, cache: &mut ScheduleCache) -> Result<(), StoreError> {
        let entries = records::active(&*self.store).await?;
        if entries.len() == rcrt_breadcrumb::MAX_PAGE as usize {
            tracing::warn!(
                followed = entries.len(),
                "the maximum number of schedules is followed; others do not fire until some are cancelled"
            );
        }
        let now = self.clock.now();
        cache.keep(|id| entries.iter().any(|entry| entry.id == id));
        for entry in &entries {
            cache.insert(entry.id, entry.version, &entry.schedule, now, &self.settings);
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn check_due(&self, cache: &mut ScheduleCache) {
        let now = self.clock.now();
        let due: Vec<(Uuid, bool)> =
            cache.due(now).into_iter().map(|id| (id, cache.may_take_over(id, now, &self.settings))).collect();
        let mut looks = stream::iter(due)
            .map(async |(id, may_take_over)| (id, self.check(id, may_take_over).await))
            .buffer_unordered(WIDTH);
        while let Some((id, looked)) = looks.next().await {
            self.note(cache, id, looked, self.clock.now());
        }
    }

    fn note(&self, cache: &mut ScheduleCache, id: Uuid, looked: ScheduleCheck, now: DateTime<Utc>) {
        match looked {
            ScheduleCheck::Gone => cache.forget(id),
            ScheduleCheck::At { entry, wake } => {
                cache.insert(id, entry.version, &entry.schedule, now, &self.settings);
                if entry.is_active() || entry.schedule.is_err() {
                    cache.wake_at(id, wake);
                } else {
                    cache.forget(id);
                }
            }
            ScheduleCheck::Failed(error) => {
                tracing::warn!(schedule = %id, %error, "a schedule cannot be checked or fired; retrying");
                cache.wake_at(id, Some(now + self.settings.retry_after));
            }
        }
    }
}

/// Returns some time after the stop.
async fn cut_off(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(DRAIN).await;
}
