//! What a server asks during a call: which folders it may use, and what a person would enter. No
//! call waits for a person, so the record of the server says how it is answered.
//!
//! A server of 2026-07-28 returns its questions, and the request is repeated with the responses and
//! with the state that it wants back. Older ones send requests of their own (`handler.rs`).

use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    FormElicitationCapability, InputRequest, InputRequiredResult, InputResponses, RootsCapabilities,
};
use serde_json::{Map, Value, json};
use url::Url;

use crate::server::Elicitation;

/// How often a server can ask in one call.
pub const MAX_ROUNDS: usize = 10;
/// The first pause before a request is repeated for a server that asks nothing. Each is twice as
/// long as the one before.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How the questions of one server are answered.
#[derive(Debug, Clone)]
pub struct Questions {
    pub elicitation: Elicitation,
    /// The folders that its program may use, as the program sees them.
    pub folders: Vec<String>,
}

impl Questions {
    /// Nothing is declared that is always refused.
    pub fn capabilities(&self) -> ClientCapabilities {
        let mut declared = ClientCapabilities::default();
        if self.elicitation != Elicitation::Decline {
            let form = FormElicitationCapability::new();
            declared.elicitation = Some(ElicitationCapability::new().with_form(form));
        }
        if !self.folders.is_empty() {
            declared.roots = Some(RootsCapabilities::default());
        }
        declared
    }

    /// The URLs of the folders.
    pub fn roots(&self) -> impl Iterator<Item = Url> {
        self.folders.iter().filter_map(|folder| Url::from_file_path(folder).ok())
    }

    /// The response to a question for a person.
    pub fn answer(&self, question: &ElicitRequestParams) -> ElicitResult {
        let content = match (self.elicitation, question) {
            (Elicitation::Defaults, ElicitRequestParams::FormElicitationParams { requested_schema, .. }) => {
                defaults(&json!(requested_schema))
            }
            _ => None,
        };
        match content {
            Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            None => ElicitResult::new(ElicitationAction::Decline),
        }
    }

    /// The responses by key; `None` if one of them is for the caller to give, or nobody can give
    /// it.
    pub fn responses(&self, asked: &InputRequiredResult) -> Option<InputResponses> {
        let mut responses = InputResponses::new();
        for (key, question) in asked.input_requests.iter().flatten() {
            let response = match question {
                InputRequest::ListRoots(_) => {
                    json!({"roots": self.roots().map(|uri| json!({"uri": uri})).collect::<Vec<_>>()})
                }
                InputRequest::Elicitation(question) if self.elicitation != Elicitation::Ask => {
                    json!(self.answer(&question.params))
                }
                _ => return None,
            };
            responses.insert(key.clone(), response);
        }
        Some(responses)
    }
}

/// The defaults of a form, if it has some and requires nothing else. A form without any is a
/// question for consent.
fn defaults(schema: &Value) -> Option<Value> {
    let fields = schema.get("properties")?.as_object()?;
    let given = |(name, field): (&String, &Value)| Some((name.clone(), field.get("default")?.clone()));
    let content: Map<String, Value> = fields.iter().filter_map(given).collect();
    let mut required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    (!content.is_empty() && required.all(|name| content.contains_key(name))).then_some(Value::Object(content))
}

/// Puts responses and state into a request that is repeated. Returns whether the protocol allows
/// questions during such a request.
pub fn fill(request: &mut ClientRequest, responses: InputResponses, state: Option<String>) -> bool {
    let (given, echoed) = match request {
        ClientRequest::CallToolRequest(request) => {
            (&mut request.params.input_responses, &mut request.params.request_state)
        }
        ClientRequest::GetPromptRequest(request) => {
            (&mut request.params.input_responses, &mut request.params.request_state)
        }
        ClientRequest::ReadResourceRequest(request) => {
            (&mut request.params.input_responses, &mut request.params.request_state)
        }
        _ => return false,
    };
    (*given, *echoed) = ((!responses.is_empty()).then_some(responses), state);
    true
}

/// The names of what is asked for, for a message.
pub fn kinds(asked: &InputRequiredResult) -> String {
    let kind = |question: &InputRequest| match question {
        InputRequest::CreateMessage(_) => "a model (sampling)",
        InputRequest::Elicitation(_) => "input (elicitation)",
        _ => "folders (roots)",
    };
    let mut kinds: Vec<&str> = asked.input_requests.iter().flatten().map(|(_, question)| kind(question)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(" and ")
}
