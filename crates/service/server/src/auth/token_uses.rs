//! Which tokens exist and when each was last used, for the list of tokens. Requests only note it in
//! memory; one task writes batches.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use rcrt_breadcrumb::{Identity, StoreError, Tenancy, TokenRecord};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::ServerState;
use crate::auth::token::TokenId;

/// A use within this time after a noted one is not noted.
const NOTED_EVERY: Duration = Duration::from_mins(1);
const WRITTEN_EVERY: Duration = Duration::from_secs(5);
/// Tokens in one batch. Further ones are noted when they are used again.
const MOST_UNWRITTEN: usize = 10_000;
/// Tokens whose last note is remembered.
const MOST_REMEMBERED: usize = 50_000;

/// The tokens that this server issued or verified since the last batch.
#[derive(Default)]
pub struct TokenUses {
    noted: Mutex<Noted>,
    /// Held while a batch is written, so that a list waits for the tokens in it.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Noted {
    at: HashMap<Uuid, Instant>,
    unwritten: HashMap<Uuid, TokenRecord>,
}

impl TokenUses {
    /// A token was issued.
    pub fn issued(&self, identity: &Identity, token: TokenId, expires_at: u64) {
        let mut noted = self.noted.lock();
        if noted.unwritten.len() < MOST_UNWRITTEN {
            noted.unwritten.entry(token.jti).or_insert_with(|| record(identity, token, expires_at, None));
        }
    }

    /// A request came with this token, which is valid.
    pub fn used(&self, identity: &Identity, token: TokenId, expires_at: u64) {
        let mut noted = self.noted.lock();
        if noted.at.get(&token.jti).is_some_and(|at| at.elapsed() < NOTED_EVERY) {
            return;
        }
        if noted.at.len() >= MOST_REMEMBERED {
            noted.at.retain(|_, at| at.elapsed() < NOTED_EVERY);
        }
        let is_full = noted.at.len() >= MOST_REMEMBERED
            || noted.unwritten.len() >= MOST_UNWRITTEN && !noted.unwritten.contains_key(&token.jti);
        if is_full {
            return;
        }
        noted.at.insert(token.jti, Instant::now());
        noted.unwritten.insert(token.jti, record(identity, token, expires_at, Some(Utc::now())));
    }

    /// Writes what was noted, and waits for what another caller is writing. After an error the
    /// tokens are noted again when they are used.
    pub async fn write(&self, tenancy: &dyn Tenancy) -> Result<(), StoreError> {
        let _writing = self.writing.lock().await;
        // They stay noted until they are written: the caller may go away.
        let batch: Vec<TokenRecord> = self.noted.lock().unwritten.values().cloned().collect();
        if batch.is_empty() {
            return Ok(());
        }
        let ended: Vec<_> = batch.iter().map(|token| (token.id, token.used_at)).collect();
        let written = tenancy.record_tokens(batch).await;
        let mut noted = self.noted.lock();
        for (id, used_at) in ended {
            if noted.unwritten.get(&id).is_some_and(|token| token.used_at == used_at) {
                noted.unwritten.remove(&id);
            }
            if written.is_err() {
                noted.at.remove(&id);
            }
        }
        written
    }
}

fn record(identity: &Identity, token: TokenId, expires_at: u64, used_at: Option<DateTime<Utc>>) -> TokenRecord {
    let second = |seconds: i64| DateTime::from_timestamp(seconds, 0).unwrap_or(DateTime::<Utc>::MAX_UTC);
    TokenRecord {
        owner_id: identity.owner_id,
        id: token.jti,
        agent_id: identity.agent_id,
        roles: identity.roles.clone(),
        profile: identity.profile,
        issued_at: DateTime::from_timestamp_micros((token.issued_at * 1e6) as i64).unwrap_or_default(),
        expires_at: second(i64::try_from(expires_at).unwrap_or(i64::MAX)),
        used_at,
    }
}

/// Writes batches until `stop`, and the rest then.
pub async fn write_batches(state: ServerState, stop: CancellationToken) {
    let mut ticks = interval(WRITTEN_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_failing = false;
    loop {
        let is_last = tokio::select! {
            () = stop.cancelled() => true,
            _ = ticks.tick() => false,
        };
        match state.token_uses.write(&*state.tenancy).await {
            Ok(()) => is_failing = false,
            Err(error) if !is_failing => {
                tracing::warn!(%error, "the last uses of tokens cannot be written; retrying");
                is_failing = true;
            }
            Err(_) => {}
        }
        if is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, Ordering};

    use async_trait::async_trait;
    use futures::FutureExt;
    use rcrt_breadcrumb::{Profile, TenancyDecorator};

    use super::*;

    #[derive(Default)]
    struct Recording {
        responds: AtomicBool,
        written: Mutex<Vec<Uuid>>,
    }

    #[async_trait]
    impl TenancyDecorator for Recording {
        fn inner(&self) -> &dyn Tenancy {
            unreachable!("only tokens are recorded")
        }

        async fn record_tokens(&self, tokens: Vec<TokenRecord>) -> Result<(), StoreError> {
            if !self.responds.load(Ordering::Relaxed) {
                pending::<()>().await;
            }
            self.written.lock().extend(tokens.iter().map(|token| token.id));
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_write_that_is_dropped_loses_no_token() {
        let (uses, store) = (TokenUses::default(), Recording::default());
        let identity =
            Identity { owner_id: Uuid::now_v7(), agent_id: Uuid::now_v7(), roles: Vec::new(), profile: Profile::Main };
        let token = TokenId { jti: Uuid::now_v7(), issued_at: 1.0 };
        uses.used(&identity, token, 2);
        assert!(uses.write(&store).now_or_never().is_none());
        store.responds.store(true, Ordering::Relaxed);
        for _ in 0..2 {
            assert!(uses.write(&store).await.is_ok());
            assert_eq!(*store.written.lock(), [token.jti]);
        }
    }
}
