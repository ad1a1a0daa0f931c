//! How much one call can write into the store. An attempt counts even if the store refuses it: a
//! refusal costs the store a transaction too.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rcrt_breadcrumb::{LimitName, LimitReached, MAX_BREADCRUMBS_WRITTEN, MAX_BYTES_WRITTEN, OpError};
use serde_json::Value;

/// How often one call can read a secret. Each read is written to the audit log.
const MAX_SECRETS_ASKED: u64 = 100;

#[derive(Default)]
pub(crate) struct CallQuota {
    records: AtomicU64,
    bytes: AtomicU64,
    secrets: AtomicU64,
}

impl CallQuota {
    /// Counts one attempt to create, change or delete a record; `written` is its new content.
    pub fn take(&self, written: Option<&Value>) -> Result<(), OpError> {
        let bytes = written.map_or(0, json_bytes);
        let too_many = exceeds(&self.records, 1, MAX_BREADCRUMBS_WRITTEN);
        let too_much = exceeds(&self.bytes, bytes, MAX_BYTES_WRITTEN);
        if too_many {
            let reached = LimitReached { limit: LimitName::BreadcrumbsWritten, allowed: MAX_BREADCRUMBS_WRITTEN };
            let message = format!("one call may create, change and delete {MAX_BREADCRUMBS_WRITTEN} records in total");
            return Err(OpError::exhausted(reached, message));
        }
        if too_much {
            let reached = LimitReached { limit: LimitName::BytesWritten, allowed: MAX_BYTES_WRITTEN };
            let message = format!("one call may write {MAX_BYTES_WRITTEN} bytes of JSON into records in total");
            return Err(OpError::exhausted(reached, message));
        }
        Ok(())
    }

    /// Counts one attempt to read a secret.
    pub fn take_secret(&self) -> Result<(), OpError> {
        if exceeds(&self.secrets, 1, MAX_SECRETS_ASKED) {
            let message = format!(
                "one call may ask for secrets {MAX_SECRETS_ASKED} times; keep the value that getSecret returned"
            );
            return Err(OpError::new("ResourceExhausted", message));
        }
        Ok(())
    }
}

fn exceeds(count: &AtomicU64, more: u64, most: u64) -> bool {
    count.fetch_add(more, Ordering::Relaxed).saturating_add(more) > most
}

/// The length of the value's JSON.
fn json_bytes(value: &Value) -> u64 {
    struct ByteCounter(u64);

    impl io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counted = ByteCounter(0);
    match serde_json::to_writer(&mut counted, value) {
        Ok(()) => counted.0,
        Err(_) => u64::MAX / 2,
    }
}
