//! An endpoint that speaks OpenAI's protocol: `POST {base}/embeddings` with `{model, input: [text…]}`.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use breadcrumb::{EmbedError, EmbedPriority, Embedder, EmbeddingModel};
use reqwest::{StatusCode, Url, header};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::to_length_one;

/// How many texts go in one request. Every service that we know takes as many.
const MOST: usize = 64;
/// In characters. The shortest context of a common model has 512 tokens, the usual one 8,192.
const MAX_TEXT: usize = 8_000;
/// The longest answer: vectors of the most dimensions for the most texts, as numbers of 24 characters.
const MAX_ANSWER: usize = MOST * MAX_DIMENSIONS * 25;
/// What the database can keep.
const MAX_DIMENSIONS: usize = 16_000;
/// Before the second attempt; twice as long before the third.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest that a service may bid us wait before the next attempt.
const MAX_PAUSE: Duration = Duration::from_secs(20);

/// Which service and model.
#[derive(Clone)]
pub struct EndpointOptions {
    /// What `/embeddings` is added to, such as `http://localhost:11434/v1` or `https://api.openai.com/v1`.
    pub base: Url,
    /// As the service calls it, such as `nomic-embed-text` or `text-embedding-3-small`.
    pub model: String,
    /// Sent as a bearer token, and shown nowhere.
    pub key: Option<String>,
    /// How long one request for records may take; one for a search takes a tenth at most.
    pub timeout: Duration,
    /// How often a request for records is sent at most.
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

/// What is wrong with the options.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error(
        "the address of the embeddings must be http:// or https:// with a host, and hold no user or password: the key goes in a variable of its own"
    )]
    Base,
    #[error("the model's name must have 1 to 100 characters")]
    Model,
    #[error("the key holds a character that cannot stand in a header")]
    Key,
    #[error("no client for the embeddings: {0}")]
    Client(#[from] reqwest::Error),
}

/// The endpoint as an embedder. Vectors of other lengths than the first are refused.
#[derive(Debug)]
pub struct Endpoint {
    options: EndpointOptions,
    address: Url,
    client: reqwest::Client,
    model: OnceCell<EmbeddingModel>,
}

#[derive(Serialize)]
struct Asked<'a> {
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

/// Why one request gave nothing.
struct Failed {
    error: EmbedError,
    /// How long to wait before the next, where the service says so.
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
            // An answer from elsewhere would be one from who was not named.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { options, address, client, model: OnceCell::new() })
    }

    async fn learn(&self) -> Result<EmbeddingModel, EmbedError> {
        let vectors = self.ask_again(&["How long is a vector?".to_owned()]).await?;
        let dimensions = vectors.first().map_or(0, Vec::len);
        // The address too: the same name may mean another model elsewhere.
        let at = Sha256::digest(self.address.as_str().as_bytes());
        let at = at.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Ok(EmbeddingModel { id: format!("{}/{at:012x}/{dimensions}", self.options.model), dimensions })
    }

    /// Asks up to as often as the options say, where another attempt can help.
    async fn ask_again(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
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
        let asked = Asked { model: &self.options.model, input: texts, encoding_format: "float" };
        let unavailable = |error: reqwest::Error| Failed::later(format!("no answer: {}", reason(&error)));
        let mut answer =
            self.client.post(self.address.clone()).json(&asked).timeout(timeout).send().await.map_err(unavailable)?;
        let status = answer.status();
        let pause = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unavailable)? {
            if body.len() + piece.len() > MAX_ANSWER {
                return Err(Failed::later("its answer is too long".to_owned()));
            }
            body.extend_from_slice(&piece);
        }
        match status {
            StatusCode::OK => vectors(&body, texts.len()).map_err(Failed::later),
            // These texts are too long, or not such as it takes; nothing else was wrong with the request.
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Err(Failed { error: EmbedError::Refused(format!("it answered {status}")), pause: None })
            }
            _ => Err(Failed {
                error: EmbedError::Unavailable(format!("it answered {status}")),
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
        serde_json::from_slice(body).map_err(|error| format!("its answer cannot be read: {error}"))?;
    let mut vectors = vec![Vec::new(); texts];
    for one in answered.data {
        let place = vectors.get_mut(one.index).filter(|place| place.is_empty());
        *place.ok_or("its answer has another vector than was asked for")? = one.embedding;
    }
    let dimensions = vectors.first().map_or(0, Vec::len);
    for vector in &mut vectors {
        if !(1..=MAX_DIMENSIONS).contains(&vector.len()) || vector.len() != dimensions {
            return Err(format!("its answer has a vector of {} numbers", vector.len()));
        }
        if vector.iter().any(|x| !x.is_finite()) || vector.iter().all(|x| *x == 0.0) {
            return Err("its answer has a vector without a direction".to_owned());
        }
        to_length_one(vector);
    }
    Ok(vectors)
}

/// Without the address, which is the operator's.
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
        self.model.get_or_try_init(|| self.learn()).await.cloned()
    }

    async fn embed(&self, mut texts: Vec<String>, priority: EmbedPriority) -> Result<Vec<Vec<f32>>, EmbedError> {
        let model = self.prepare().await?;
        for text in &mut texts {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            if text.trim().is_empty() {
                // Services refuse an empty text.
                "-".clone_into(text);
            }
        }
        let vectors = match priority {
            EmbedPriority::Records => self.ask_again(&texts).await?,
            EmbedPriority::Search => {
                self.ask(&texts, self.options.timeout / 10).await.map_err(|failed| failed.error)?
            }
        };
        match vectors.iter().find(|vector| vector.len() != model.dimensions) {
            Some(other) => Err(EmbedError::Unavailable(format!(
                "its vectors have {} numbers now, and had {}",
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
