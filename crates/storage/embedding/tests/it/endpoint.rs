use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use rcrt_breadcrumb::{EmbedError, EmbedPriority, Embedder};
use rcrt_embedding::{Endpoint, EndpointOptions};
use serde_json::{Value, json};

const KEY: &str = "sk-very-secret";

/// A service with OpenAI's protocol. Tests can queue responses for the next requests.
#[derive(Default)]
struct Service {
    asked: Mutex<Vec<(HeaderMap, Value)>>,
    queued: Mutex<VecDeque<Response>>,
}

impl Service {
    fn queue(&self, answer: impl IntoResponse) {
        self.queued.lock().unwrap().push_back(answer.into_response());
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn embeddings(State(service): State<Arc<Service>>, headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    let texts = asked["input"].as_array().unwrap().clone();
    service.asked.lock().unwrap().push((headers, asked));
    if let Some(answer) = service.queued.lock().unwrap().pop_front() {
        return answer;
    }
    let one = |(index, text): (usize, &Value)| {
        let length = text.as_str().unwrap().len() as f32;
        json!({"object": "embedding", "index": index, "embedding": [length, 0.0, 3.0]})
    };
    // In reverse order: the client must use the index.
    let data: Vec<Value> = texts.iter().enumerate().map(one).rev().collect();
    Json(json!({"object": "list", "data": data, "model": "small", "usage": {"prompt_tokens": 1, "total_tokens": 1}}))
        .into_response()
}

async fn start() -> (Arc<Service>, Endpoint) {
    let service = Arc::new(Service::default());
    let router = Router::new().route("/v1/embeddings", post(embeddings)).with_state(service.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let options = EndpointOptions {
        key: Some(KEY.into()),
        timeout: Duration::from_mins(2),
        ..EndpointOptions::new(base, "small")
    };
    assert!(!format!("{options:?}").contains(KEY));
    (service, Endpoint::new(options).unwrap())
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[tokio::test]
async fn vectors_are_returned_in_the_order_of_the_texts() {
    let (service, endpoint) = start().await;
    assert_eq!(endpoint.model(), None);
    let model = endpoint.prepare().await.unwrap();
    assert_eq!(model.dimensions, 3);
    assert!(model.id.starts_with("small/"), "{}", model.id);
    let vectors = endpoint.embed(texts(&["four", ""]), EmbedPriority::Records).await.unwrap();
    assert_eq!(vectors[0], [0.8, 0.0, 0.6]);
    assert!(vectors[1][0] < vectors[0][0]);
    let asked = service.asked.lock().unwrap();
    let (headers, body) = asked.last().unwrap();
    assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(body["model"], "small");
    assert_eq!(body["input"][0], "four");
    assert_ne!(body["input"][1], "", "services reject an empty text");
    assert!(!format!("{endpoint:?}").contains(KEY));
}

#[tokio::test]
async fn temporary_failures_are_retried_except_for_a_search() {
    let (service, endpoint) = start().await;
    endpoint.prepare().await.unwrap();
    service.queue((StatusCode::TOO_MANY_REQUESTS, [("retry-after", "0")]));
    service.queue((StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")]));
    let before = service.asked();
    endpoint.embed(texts(&["a"]), EmbedPriority::Records).await.unwrap();
    assert_eq!(service.asked() - before, 3);

    service.queue(StatusCode::BAD_GATEWAY);
    let error = endpoint.embed(texts(&["a"]), EmbedPriority::Search).await.unwrap_err();
    assert_eq!(error, EmbedError::Unavailable("it returned 502 Bad Gateway".into()));
    assert_eq!(service.asked() - before, 4);
}

#[tokio::test]
async fn a_refused_text_is_not_retried() {
    let (service, endpoint) = start().await;
    endpoint.prepare().await.unwrap();
    service.queue((StatusCode::BAD_REQUEST, "maximum context length exceeded"));
    let before = service.asked();
    let error = endpoint.embed(texts(&["a"]), EmbedPriority::Records).await.unwrap_err();
    assert!(matches!(error, EmbedError::Refused(_)), "{error:?}");
    assert_eq!(service.asked() - before, 1);
}

#[tokio::test]
async fn an_invalid_response_is_an_error() {
    let (service, endpoint) = start().await;
    endpoint.prepare().await.unwrap();
    let vector = |index: usize, vector: Value| json!({"index": index, "embedding": vector});
    for (data, what) in [
        (json!([]), "a vector of 0 numbers"),
        (json!([vector(1, json!([1, 2, 3]))]), "unexpected or repeated index"),
        (json!([vector(0, json!([1, 2, 3])), vector(0, json!([1, 2, 3]))]), "unexpected or repeated index"),
        (json!([vector(0, json!([0, 0, 0]))]), "zero or not finite"),
        (json!([vector(0, json!([1e39, 0, 0]))]), "response"),
        (json!([vector(0, json!([1, 2]))]), "have 2 numbers now, but had 3 before"),
        (json!("text"), "cannot be parsed"),
    ] {
        service.queue(Json(json!({"data": data})));
        let error = endpoint.embed(texts(&["a"]), EmbedPriority::Search).await.unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[tokio::test]
async fn an_invalid_url_is_refused() {
    for wrong in ["ftp://host/v1", "http://user:password@host/v1"] {
        let error = Endpoint::new(EndpointOptions::new(wrong.parse().unwrap(), "small")).unwrap_err().to_string();
        assert!(error.contains("http://") && !error.contains("password@"), "{error}");
    }
    assert!(Endpoint::new(EndpointOptions::new("http://host".parse().unwrap(), "")).is_err());
}
