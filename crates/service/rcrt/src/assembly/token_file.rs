//! The token in the data folder: written at the start, and renewed long before it expires or when
//! the signing key changes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use rcrt_breadcrumb::Identity;
use rcrt_server::TokenKey;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::keys::replace_private;

const LIFETIME: Duration = Duration::from_hours(30 * 24);
const RENEW_EVERY: Duration = Duration::from_hours(12);
/// Poll interval for the signing key.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const RETRY_EVERY: Duration = Duration::from_mins(1);

/// Renews the token file until it is stopped.
pub struct TokenFile {
    stop: CancellationToken,
    renewal: JoinHandle<()>,
}

impl TokenFile {
    /// Writes the file, readable only by its owner. Also returns the token.
    pub fn write(path: PathBuf, key: TokenKey, identity: Identity) -> anyhow::Result<(Self, String)> {
        let token = renew(&path, &key, &identity)?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let renewal = tokio::spawn(async move {
            let (mut renew_at, mut signed_by) = (Instant::now() + RENEW_EVERY, key.newest_id());
            loop {
                tokio::select! {
                    () = stopped.cancelled() => return,
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
                let present = key.newest_id();
                if Instant::now() < renew_at && present == signed_by {
                    continue;
                }
                signed_by = present;
                let pause = match renew(&path, &key, &identity) {
                    Ok(_) => RENEW_EVERY,
                    Err(error) => {
                        tracing::warn!(%error, "the token in the data folder could not be renewed");
                        RETRY_EVERY
                    }
                };
                renew_at = Instant::now() + pause;
            }
        });
        Ok((Self { stop, renewal }, token))
    }

    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.renewal.await {
            tracing::warn!(%error, "the renewal of the token failed");
        }
    }
}

fn renew(path: &std::path::Path, key: &TokenKey, identity: &Identity) -> anyhow::Result<String> {
    let token = key.issue(identity, LIFETIME)?;
    replace_private(path, format!("{token}\n").as_bytes())
        .with_context(|| format!("the token file {} cannot be written", path.display()))?;
    Ok(token)
}
