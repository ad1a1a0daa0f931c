//! The binding JSON-RPC: from a body to an operation, and back.

use futures::StreamExt;
use futures::stream::BoxStream;
use rcrt_a2a_types::{A2aError, ErrorKind, methods};
use rcrt_breadcrumb::check_numbers;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::{A2aAgent, Updates};
use crate::params::{Get, read};

/// A request.
#[derive(Debug)]
pub struct Call {
    id: Value,
    method: String,
    params: Value,
}

/// As it is sent. A field that occurs twice is refused.
#[derive(Deserialize)]
struct Request {
    jsonrpc: Option<Value>,
    id: Option<Value>,
    method: Option<Value>,
    params: Option<Value>,
}

/// Its answer: one response, or a stream of them.
pub enum Answer {
    One(Value),
    Stream(BoxStream<'static, Value>),
}

enum Done {
    One(Value),
    Stream(Updates),
}

impl Call {
    /// Reads a request. An error is the whole response.
    pub fn read(body: &[u8]) -> Result<Self, Value> {
        let refuse = |id: &Value, kind, why: &str| failed(id, &A2aError::new(kind, why));
        let request: Request = serde_json::from_slice(body).map_err(|error| {
            let why: String = error.to_string().chars().take(300).collect();
            if error.is_data() {
                let why = format!("the body must be one JSON-RPC request, an object: {why}");
                return refuse(&Value::Null, ErrorKind::InvalidRequest, &why);
            }
            refuse(&Value::Null, ErrorKind::Parse, &format!("the body is not valid JSON: {why}"))
        })?;
        let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
        let Some(id) = request.id.filter(is_id) else {
            return Err(refuse(&Value::Null, ErrorKind::InvalidRequest, "id must be a string or a whole number"));
        };
        if request.jsonrpc != Some(Value::from("2.0")) {
            return Err(refuse(&id, ErrorKind::InvalidRequest, "jsonrpc must be \"2.0\""));
        }
        let Some(Value::String(method)) = request.method else {
            return Err(refuse(&id, ErrorKind::InvalidRequest, "method must be a string"));
        };
        let params = request.params.unwrap_or_else(|| json!({}));
        if !params.is_object() {
            return Err(failed(&id, &A2aError::invalid("params", "must be an object")));
        }
        if let Err(violation) = check_numbers(body) {
            return Err(failed(&id, &A2aError::invalid(&violation.field, violation.message)));
        }
        Ok(Self { id, method, params })
    }

    /// Does what is asked. `url`: of the interface, for the card.
    pub async fn run(self, agent: &A2aAgent, url: &str) -> Answer {
        let Self { id, method, params } = self;
        match done(agent, url, &method, params).await {
            Ok(Done::One(result)) => Answer::One(succeeded(&id, &result)),
            Ok(Done::Stream(updates)) => Answer::Stream(
                updates
                    .map(move |update| match update {
                        Ok(update) => succeeded(&id, &json!(update)),
                        Err(error) => failed(&id, &error),
                    })
                    .boxed(),
            ),
            Err(error) => Answer::One(failed(&id, &error)),
        }
    }

    /// The response for an error that was found before the operation.
    pub fn refuse(&self, error: &A2aError) -> Value {
        failed(&self.id, error)
    }
}

async fn done(agent: &A2aAgent, url: &str, method: &str, params: Value) -> Result<Done, A2aError> {
    Ok(match method {
        methods::SEND => Done::One(json!(agent.send(read(params)?).await?)),
        methods::SEND_STREAMING => Done::Stream(agent.stream(read(params)?).await?),
        methods::GET => Done::One(json!(agent.get(&read(params)?).await?)),
        methods::LIST => Done::One(agent.list(&read(params)?).await?),
        methods::CANCEL => Done::One(json!(agent.cancel(&read::<Get>(params)?.id).await?)),
        methods::SUBSCRIBE => Done::Stream(agent.subscribe(&read::<Get>(params)?.id).await?),
        methods::EXTENDED_CARD => Done::One(agent.extended_card(url).await?),
        methods::CREATE_PUSH => Done::One(agent.create_push(&read(params)?).await?),
        methods::GET_PUSH => Done::One(agent.get_push(&read(params)?).await?),
        methods::LIST_PUSH => Done::One(agent.list_push(&read(params)?).await?),
        methods::DELETE_PUSH => Done::One(agent.delete_push(&read(params)?).await?),
        _ => {
            let why = format!("{method:.100} is not a method of A2A 1.0");
            return Err(A2aError::new(ErrorKind::MethodNotFound, why));
        }
    })
}

fn succeeded(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn failed(id: &Value, error: &A2aError) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error.to_json_rpc()})
}
