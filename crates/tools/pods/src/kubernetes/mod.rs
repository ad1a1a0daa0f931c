//! The API server: the requests that pods need, and no others. Each request reads the token again,
//! because the kubelet replaces it.

mod error;
mod pod;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use reqwest::{Certificate, Method, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;

pub use error::ApiError;
pub use pod::{Pod, PodList};

/// The time limit of one request, except for a watch.
const REQUEST: Duration = Duration::from_secs(15);
/// How long a watch stays open. Then the pod is read again, which also finds what a broken
/// connection hides.
const WATCH: Duration = Duration::from_mins(1);
/// The largest object that is read.
const MAX_OBJECT: usize = 4 * 1024 * 1024;
/// The pause before a request is repeated: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How the API server is reached, and as whom.
#[derive(Debug, Clone)]
pub struct ClusterAccess {
    pub url: Url,
    /// A file with the certificates of its authority, in PEM.
    pub authority: PathBuf,
    /// The file with the token of this pod's service account.
    pub token: PathBuf,
    /// Where pods are created.
    pub namespace: String,
}

#[derive(Debug)]
pub struct Cluster {
    http: reqwest::Client,
    access: ClusterAccess,
}

impl Cluster {
    pub fn new(access: ClusterAccess) -> Result<Self, ApiError> {
        let file = access.authority.display();
        let pem = std::fs::read(&access.authority)
            .map_err(|error| ApiError::Setup(format!("the authority's certificate {file} cannot be read: {error}")))?;
        let authority = Certificate::from_pem_bundle(&pem)
            .map_err(|error| ApiError::Setup(format!("{file} has no certificate in PEM: {error}")))?;
        let http = reqwest::Client::builder()
            .user_agent(concat!("rcrt/", env!("CARGO_PKG_VERSION")))
            .tls_certs_only(authority)
            .https_only(true)
            .no_proxy()
            .connect_timeout(Duration::from_secs(5))
            .tcp_keepalive(Duration::from_secs(15))
            // The token must not be sent to another server.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| ApiError::Setup(error::with_causes(&error)))?;
        Ok(Self { http, access })
    }

    /// The host and the port of the API server.
    pub fn address(&self) -> (String, u16) {
        let url = &self.access.url;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        (host.to_owned(), url.port_or_known_default().unwrap_or(443))
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
        limit: Duration,
    ) -> Result<Response, ApiError> {
        let mut url = self.access.url.clone();
        url.path_segments_mut()
            .map_err(|()| ApiError::Setup(format!("{} is not the URL of a server", self.access.url)))?
            .pop_if_empty()
            .extend(["api", "v1", "namespaces", self.access.namespace.as_str()])
            .extend(path);
        let token = tokio::fs::read_to_string(&self.access.token).await.map_err(|error| {
            ApiError::Setup(format!("the token {} cannot be read: {error}", self.access.token.display()))
        })?;
        let mut request = self.http.request(method, url).query(query).bearer_auth(token.trim()).timeout(limit);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| ApiError::Unreachable(error::with_causes(&error)))?;
        if response.status().is_success() { Ok(response) } else { Err(ApiError::refused(response).await) }
    }

    async fn object<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<T, ApiError> {
        let response = self.send(method, path, query, body, REQUEST).await?;
        let body = read(response, MAX_OBJECT).await?;
        serde_json::from_slice(&body).map_err(|error| ApiError::Unreadable(error.to_string()))
    }

    /// Creates a pod. One that exists is from a request whose response was lost: names are random.
    pub async fn create_pod(&self, pod: &Value, until: Instant) -> Result<Pod, ApiError> {
        let created = with_retries(until, || self.object(Method::POST, &["pods"], &[], Some(pod))).await;
        match created {
            Err(error) if error.already_exists() => {
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                with_retries(until, || self.pod(name)).await
            }
            created => created,
        }
    }

    /// Creates a secret, which cannot be read again.
    pub async fn create_secret(&self, secret: &Value, until: Instant) -> Result<(), ApiError> {
        let create = || self.object::<Value>(Method::POST, &["secrets"], &[], Some(secret));
        match with_retries(until, create).await {
            Err(error) if !error.already_exists() => Err(error),
            _ => Ok(()),
        }
    }

    pub async fn pod(&self, name: &str) -> Result<Pod, ApiError> {
        self.object(Method::GET, &["pods", name], &[], None).await
    }

    /// One page of pods with these labels.
    pub async fn pods(&self, labels: &str, after: &str) -> Result<PodList, ApiError> {
        let query = [("labelSelector", labels), ("limit", "500"), ("continue", after)];
        let query = if after.is_empty() { &query[..2] } else { &query[..] };
        self.object(Method::GET, &["pods"], query, None).await
    }

    /// Deletes a pod at once. One that does not exist is as good as deleted.
    pub async fn delete_pod(&self, name: &str, until: Instant) -> Result<(), ApiError> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "propagationPolicy": "Background"});
        let path = ["pods", name];
        let delete = || self.object::<Value>(Method::DELETE, &path, &[], Some(&options));
        match with_retries(until, delete).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// At most this many bytes of a container's log.
    pub async fn log(&self, name: &str, container: &str, most: usize, until: Instant) -> Result<Vec<u8>, ApiError> {
        let limit = most.to_string();
        let (path, query) = (["pods", name, "log"], [("container", container), ("limitBytes", limit.as_str())]);
        with_retries(until, || async {
            let response = self.send(Method::GET, &path, &query, None, REQUEST * 2).await?;
            read(response, most).await
        })
        .await
    }

    /// Waits until `seen` finds in the pod's state what it looks for. Reads the pod again after
    /// each watch, however it ended.
    pub async fn until<T>(&self, name: &str, mut seen: impl FnMut(&Pod) -> Option<T>) -> Result<T, ApiError> {
        let mut pause = PAUSE.0;
        loop {
            let again = Instant::now() + pause;
            let pod = with_retries(Instant::now() + WATCH, || self.pod(name)).await?;
            if let Some(found) = seen(&pod) {
                return Ok(found);
            }
            let ended = self.watch(name, &pod.metadata.resource_version, &mut seen).await;
            match ended {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => pause = PAUSE.0,
                Err(error) if error.is_passing() => pause = (pause * 2).min(PAUSE.1),
                Err(error) => return Err(error),
            }
            sleep_until(again).await;
        }
    }
}

/// Reads a body, which is an error if it is longer than `most`.
async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, ApiError> {
    let mut body = BytesMut::new();
    while let Some(part) = response.chunk().await.map_err(|error| ApiError::Unreachable(error::with_causes(&error)))? {
        if body.len() + part.len() > most {
            return Err(ApiError::Unreadable(format!("it is longer than {most} bytes")));
        }
        body.extend_from_slice(&part);
    }
    Ok(body.to_vec())
}

/// Repeats a request that may succeed later, as long as the next attempt begins before `until`.
async fn with_retries<T, F>(until: Instant, mut ask: impl FnMut() -> F) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>>,
{
    let mut pause = PAUSE.0;
    loop {
        let error = match ask().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let next = error.retry_after().unwrap_or(pause);
        if !error.is_passing() || Instant::now() + next >= until {
            return Err(error);
        }
        tracing::debug!(%error, "a request to the API server is repeated");
        sleep(next).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}
