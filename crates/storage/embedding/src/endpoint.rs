//! An embedder that calls a service with OpenAI's protocol: `POST {base}/embeddings` with `{model,
//! input: [text…]}`.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{EmbedError, EmbedPriority, Embedder, EmbeddingModel};
use reqwest::{StatusCode, Url, header};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::to_length_one;

/// Texts per request. Every known service accepts this many.
const MOST: usize = 64;
/// In bytes. The shortest context of a common model has 512 tokens, the usual one 8,192.
const MAX_TEXT: usize = 8_000;
/// Bytes of a response body: the most texts with the most dimensions, 24 characters and a comma for
/// each number.
const MAX_ANSWER: usize = MOST * MAX_DIMENSIONS * 25;
/// The database's limit for a vector.
const MAX_DIMENSIONS: usize = 16_000;
/// Pause before the second attempt. It doubles before each further one.
const PAUSE: Duration = Duration::from_millis(500);
/// Upper limit for a service's `Retry-After`.
const MAX_PAUSE: Duration = Duration::from_secs(20);

/// Which service and model.
#[derive(Clone)]
pub struct EndpointOptions {
    /// The base URL, to which `/embeddings` is added, such as `http://localhost:11434/v1` or
    /// `https://api.openai.com/v1`.
    pub base: Url,
    /// The service's name for the model, such as `nomic-embed-text` or `text-embedding-3-small`.
    pub model: String,
    /// Sent as a bearer token. Never logged or displayed.
    pub key: Option<String>,
    /// Timeout of one request for records. A request for a search gets a tenth of it.
    pub timeout: Duration,
    /// Maximum number of attempts of a request for records.
    pub attempts: u32,
}

impl EndpointOptions {
    pub fn new(base: Url, model: impl Into<String>) -> Self {
        Self { base, model: model.into(), key: None, timeout: Duration::from_mins(1), attempts: 3 }
    }
}

impl fmt::Debug for EndpointOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointOptions")
            .field("base", &self.base.as_str())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// An invalid option.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error(
        "the URL of the embedding service must start with http:// or https://, name a host, and contain no user or password; pass the key with --embedding-key or RCRT_EMBEDDING_KEY"
    )]
    Base,
    #[error("the model's name must have 1 to 100 characters")]
    Model,
    #[error("the key has a character that is not allowed in an HTTP header")]
    Key,
    #[error("the HTTP client for embeddings cannot be created: {0}")]
    Client(#[from] reqwest::Error),
}

/// The endpoint as an embedder. It refuses vectors whose length differs from the first one.
#[derive(Debug)]
pub struct Endpoint {
    options: EndpointOptions,
    address: Url,
    client: reqwest::Client,
    model: OnceCell<EmbeddingModel>,
}

#[derive(Serialize)]
struct EmbedRequest<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Answered {
    data: Vec<Embedded>,
}

#[derive(Deserialize)]
struct Embedded {
    index: usize,
    embedding: Vec<f32>,
}

/// A failed request.
struct Failed {
    error: EmbedError,
    /// The service's `Retry-After`, if it sent one.
    pause: Option<Duration>,
}

impl Endpoint {
    pub fn new(options: EndpointOptions) -> Result<Self, EndpointError> {
        let base = &options.base;
        let is_web = matches!(base.scheme(), "http" | "https") && base.has_host();
        if !is_web || !base.username().is_empty() || base.password().is_some() {
            return Err(EndpointError::Base);
        }
        if options.model.is_empty() || options.model.chars().count() > 100 {
            return Err(EndpointError::Model);
        }
        let mut headers = header::HeaderMap::new();
        if let Some(key) = &options.key {
            let mut key = header::HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| EndpointError::Key)?;
            key.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, key);
        }
        let mut address = base.clone();
        address.set_path(&format!("{}/embeddings", base.path().trim_end_matches('/')));
        let client = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(Duration::from_secs(5))
            // A redirect would send texts and the key to a host that the operator did not name.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { options, address, client, model: OnceCell::new() })
    }

    async fn detect(&self) -> Result<EmbeddingModel, EmbedError> {
        let vectors = self.request_with_retries(&["How long is a vector?".to_owned()]).await?;
        let dimensions = vectors.first().map_or(0, Vec::len);
        // Include the address, because the same name can mean another model on another service.
        let at = Sha256::digest(self.address.as_str().as_bytes());
        let at = at.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Ok(EmbeddingModel { id: format!("{}/{at:012x}/{dimensions}", self.options.model), dimensions })
    }

    /// Sends the request, and retries it up to `attempts` times if a retry can succeed.
    async fn request_with_retries(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut attempt = 1;
        loop {
            let failed = match self.ask(texts, self.options.timeout).await {
                Ok(vectors) => return Ok(vectors),
                Err(failed) => failed,
            };
            if attempt >= self.options.attempts || matches!(failed.error, EmbedError::Refused(_)) {
                return Err(failed.error);
            }
            let pause = failed.pause.unwrap_or(PAUSE * 2_u32.saturating_pow(attempt - 1)).min(MAX_PAUSE);
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn ask(&self, texts: &[String], timeout: Duration) -> Result<Vec<Vec<f32>>, Failed> {
        let asked = EmbedRequest { model: &self.options.model, input: texts, encoding_format: "float" };
        let unavailable = |error: reqwest::Error| Failed::later(format!("no response: {}", reason(&error)));
        let mut answer =
            self.client.post(self.address.clone()).json(&asked).timeout(timeout).send().await.map_err(unavailable)?;
        let status = answer.status();
        let pause = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unavailable)? {
            if body.len() + piece.len() > MAX_ANSWER {
                return Err(Failed::later("its response is too long".to_owned()));
            }
            body.extend_from_slice(&piece);
        }
        match status {
            StatusCode::OK => vectors(&body, texts.len()).map_err(Failed::later),
            // The texts are too long or otherwise not accepted. Nothing else in the request varies.
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Err(Failed { error: EmbedError::Refused(format!("it returned {status}")), pause: None })
            }
            _ => Err(Failed {
                error: EmbedError::Unavailable(format!("it returned {status}")),
                pause: pause.map(Duration::from_secs),
            }),
        }
    }
}

impl Failed {
    fn later(text: String) -> Self {
        Self { error: EmbedError::Unavailable(text), pause: None }
    }
}

/// The vectors in the order of their texts.
fn vectors(body: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let answered: Answered =
        serde_json::from_slice(body).map_err(|error| format!("its response cannot be parsed: {error}"))?;
    let mut vectors = vec![Vec::new(); texts];
    for one in answered.data {
        let vector = vectors.get_mut(one.index).filter(|vector| vector.is_empty());
        *vector.ok_or("its response has an unexpected or repeated index")? = one.embedding;
    }
    let dimensions = vectors.first().map_or(0, Vec::len);
    for vector in &mut vectors {
        if !(1..=MAX_DIMENSIONS).contains(&vector.len()) || vector.len() != dimensions {
            return Err(format!("its response has a vector of {} numbers", vector.len()));
        }
        if vector.iter().any(|x| !x.is_finite()) || vector.iter().all(|x| *x == 0.0) {
            return Err("its response has a vector that is zero or not finite".to_owned());
        }
        to_length_one(vector);
    }
    Ok(vectors)
}

/// The reason without the URL, which is the operator's configuration.
fn reason(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it took too long"
    } else if error.is_connect() {
        "it cannot be reached"
    } else {
        "the connection broke"
    }
}

#[async_trait]
impl Embedder for Endpoint {
    fn model(&self) -> Option<EmbeddingModel> {
        self.model.get().cloned()
    }

    async fn prepare(&self) -> Result<EmbeddingModel, EmbedError> {
        self.model.get_or_try_init(|| self.detect()).await.cloned()
    }

    async fn embed(&self, mut texts: Vec<String>, priority: EmbedPriority) -> Result<Vec<Vec<f32>>, EmbedError> {
        let model = self.prepare().await?;
        for text in &mut texts {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            if text.trim().is_empty() {
                // Services reject an empty text.
                "-".clone_into(text);
            }
        }
        let vectors = match priority {
            EmbedPriority::Records => self.request_with_retries(&texts).await?,
            EmbedPriority::Search => {
                self.ask(&texts, self.options.timeout / 10).await.map_err(|failed| failed.error)?
            }
        };
        match vectors.iter().find(|vector| vector.len() != model.dimensions) {
            Some(other) => Err(EmbedError::Unavailable(format!(
                "its vectors have {} numbers now, but had {} before",
                other.len(),
                model.dimensions
            ))),
            None => Ok(vectors),
        }
    }

    fn max_batch(&self) -> usize {
        MOST
    }

    fn is_local(&self) -> bool {
        false
    }
}
