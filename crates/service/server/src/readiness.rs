//! Whether the store responds. With any number of callers, at most one query at a time goes to the
//! store, and one per second.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use rcrt_breadcrumb::{StoreError, Tenancy};

/// How long a result is reused.
const MAX_AGE: Duration = Duration::from_secs(1);
/// The timeout of the query.
const MOST_TIME: Duration = Duration::from_secs(5);

type PingResult = Shared<BoxFuture<'static, Result<(), StoreError>>>;

pub struct Readiness {
    tenancy: Arc<dyn Tenancy>,
    /// The latest query, and when it was sent.
    asked: Mutex<Option<(Instant, PingResult)>>,
}

impl Readiness {
    pub fn new(tenancy: Arc<dyn Tenancy>) -> Self {
        Self { tenancy, asked: Mutex::default() }
    }

    pub async fn check(&self) -> Result<(), StoreError> {
        self.latest_ping().await
    }

    fn latest_ping(&self) -> PingResult {
        let mut asked = self.asked.lock();
        if let Some((at, answer)) = &*asked {
            let most = if answer.peek().is_some() { MAX_AGE } else { MOST_TIME };
            if at.elapsed() < most {
                return answer.clone();
            }
        }
        let tenancy = self.tenancy.clone();
        let answer: BoxFuture<'static, _> = Box::pin(async move {
            let ping = AssertUnwindSafe(tenancy.ping()).catch_unwind();
            match tokio::time::timeout(MOST_TIME, ping).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_panic)) => Err(StoreError::Internal("the store panicked in a health check".into())),
                Err(_late) => Err(StoreError::Unavailable("the store did not respond to a ping".into())),
            }
        });
        let answer = answer.shared();
        *asked = Some((Instant::now(), answer.clone()));
        answer
    }
}
