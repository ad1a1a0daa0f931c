//! Watching one pod: a response that does not end, with a line of JSON for each change.

use std::time::Duration;

use bytes::BytesMut;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ApiError, Cluster, MAX_OBJECT, Pod, WATCH, error};

#[derive(Deserialize)]
struct Change<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl Cluster {
    /// Looks at each change after this version. `None` if the watch ended, or if the server no
    /// longer has the changes after the version.
    pub(super) async fn watch<T>(
        &self,
        name: &str,
        version: &str,
        seen: &mut impl FnMut(&Pod) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let (field, seconds) = (format!("metadata.name={name}"), WATCH.as_secs().to_string());
        let query = [
            ("watch", "true"),
            ("fieldSelector", field.as_str()),
            ("resourceVersion", version),
            ("timeoutSeconds", seconds.as_str()),
        ];
        // The server ends it; the limit is for one that does not.
        let limit = WATCH + Duration::from_secs(15);
        let mut response = match self.send(Method::GET, &["pods"], &query, None, limit).await {
            Err(ApiError::Refused { status: 410, .. }) => return Ok(None),
            response => response?,
        };
        let mut lines = BytesMut::new();
        loop {
            while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
                let line = lines.split_to(end + 1);
                let Some(pod) = read(&line)? else { return Ok(None) };
                if let Some(found) = seen(&pod) {
                    return Ok(Some(found));
                }
            }
            let part = response.chunk().await.map_err(|error| ApiError::Unreachable(error::with_causes(&error)))?;
            let Some(part) = part else { return Ok(None) };
            if lines.len() + part.len() > MAX_OBJECT {
                return Err(ApiError::Unreadable(format!("a change is longer than {MAX_OBJECT} bytes")));
            }
            lines.extend_from_slice(&part);
        }
    }
}

/// The pod after one change. `None` for the last line: the pod was deleted, or an error. Reading
/// the pod again then shows which.
fn read(line: &[u8]) -> Result<Option<Pod>, ApiError> {
    let unreadable = |error: serde_json::Error| ApiError::Unreadable(error.to_string());
    let change: Change<'_> = serde_json::from_slice(line).map_err(unreadable)?;
    match change.r#type {
        "ADDED" | "MODIFIED" => serde_json::from_str(change.object.get()).map(Some).map_err(unreadable),
        _ => Ok(None),
    }
}
