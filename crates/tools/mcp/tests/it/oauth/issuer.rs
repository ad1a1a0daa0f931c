//! An authorization server on loopback. It checks what a client sends, and misbehaves as a test
//! says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rcrt_test_servers::network::serve;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;
use url::form_urlencoded::parse;

use crate::server::Server;

/// How it misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Its metadata names another issuer.
    OtherIssuer,
    /// The response to the browser names another issuer.
    OtherIss,
    /// It says that it sends `iss`, and does not.
    NoIss,
    /// `iss` occurs twice.
    TwiceIss,
    OtherState,
    NoPkce,
    PlainPkce,
    /// Metadata of more than 128 KB.
    Huge,
    /// Its metadata is at another address, by a redirect.
    Redirect,
    /// The metadata of the resource is that of another one.
    OtherResource,
    /// The token endpoint is at an address that the operator did not open.
    PrivateEndpoint,
    /// The token endpoint redirects.
    TokenRedirect,
    /// The authorization endpoint is no web page.
    Script,
    /// No client can be registered.
    NoRegistration,
    ShortToken,
    OtherTokenType,
    /// An error whose code has the text of the request.
    Echo,
    Denied,
    /// The resource never accepts a token.
    Never,
    /// The resource asks for one more scope each time.
    EndlessScopes,
    /// The resource asks for a scope that it was given.
    SameScope,
}

pub struct Issuer {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    fault: Fault,
    /// Where a redirect leads that must not be followed.
    inner: u16,
    port: Mutex<u16>,
    resource: String,
    state: Mutex<Issued>,
}

#[derive(Default)]
struct Issued {
    /// The challenges of the codes that were not yet used, with the redirect URIs and the scopes.
    codes: HashMap<String, (String, String, String)>,
    access: String,
    refresh: String,
    scope: String,
    tokens: usize,
    /// The forms that the token endpoint got.
    forms: Vec<HashMap<String, String>>,
    clients: Vec<String>,
    registered: Vec<Value>,
}

impl Issuer {
    /// An authorization server for the tools of this server, which asks for a token from now on.
    pub async fn protecting(server: &Server, fault: Fault, inner: u16) -> Self {
        let shared = Arc::new(Shared {
            fault,
            inner,
            port: Mutex::default(),
            resource: format!("http://mcp.test:{}/mcp", server.port),
            state: Mutex::default(),
        });
        let router = Router::new()
            .route("/resource", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(shared.clone());
        let port = serve(router).await;
        *shared.port.lock().unwrap() = port;
        let guarding = shared.clone();
        server.guard(move |headers, message| guarding.refusal(headers, message));
        Self { port, shared }
    }

    /// The forms that the token endpoint got.
    pub fn forms(&self) -> Vec<HashMap<String, String>> {
        self.shared.state.lock().unwrap().forms.clone()
    }

    /// The ids of the clients that asked for authorization.
    pub fn clients(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().clients.clone()
    }

    pub fn registered(&self) -> Vec<Value> {
        self.shared.state.lock().unwrap().registered.clone()
    }

    /// The access token and the refresh token that are valid.
    pub fn valid(&self) -> [String; 2] {
        let state = self.shared.state.lock().unwrap();
        [state.access.clone(), state.refresh.clone()]
    }

    /// Revokes the access token.
    pub fn revoke(&self) {
        self.shared.state.lock().unwrap().access.clear();
    }

    /// Revokes the refresh token too.
    pub fn forget(&self) {
        let mut state = self.shared.state.lock().unwrap();
        state.access.clear();
        state.refresh.clear();
    }
}

impl Shared {
    fn url(&self) -> String {
        format!("http://as.test:{}", self.port.lock().unwrap())
    }

    /// What the protected server responds to a message without a valid token.
    fn refusal(&self, headers: &HeaderMap, message: &Value) -> Option<Response> {
        let state = self.state.lock().unwrap();
        let given = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_valid = !state.access.is_empty() && given == format!("Bearer {}", state.access);
        let metadata = format!("resource_metadata=\"{}/resource\"", self.url());
        let further = match self.fault {
            Fault::EndlessScopes => Some(format!("{} more{}", state.scope, state.tokens)),
            Fault::SameScope => Some(state.scope.clone()),
            // A tool that needs more than the others.
            Fault::None if message["params"]["name"] == "fail" && !state.scope.contains("files:write") => {
                Some("files:write".to_owned())
            }
            _ => None,
        };
        let (status, challenge) = match further {
            _ if !is_valid || self.fault == Fault::Never => {
                (StatusCode::UNAUTHORIZED, format!("Basic realm=\"x\", Bearer {metadata}, scope=\"files:read\""))
            }
            Some(scope) => {
                (StatusCode::FORBIDDEN, format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\", {metadata}"))
            }
            None => return None,
        };
        Some((status, [("www-authenticate", challenge)]).into_response())
    }

    fn issue(&self, state: &mut Issued) -> Response {
        state.tokens += 1;
        state.access = format!("the-access-token-{}", state.tokens);
        state.refresh = format!("the+refresh/token={}", state.tokens);
        let access = if self.fault == Fault::ShortToken { "short" } else { &state.access };
        let kind = if self.fault == Fault::OtherTokenType { "DPoP" } else { "bearer" };
        reply(json!({
            "access_token": access,
            "token_type": kind,
            "expires_in": 3600,
            "refresh_token": state.refresh,
            "scope": state.scope,
        }))
    }
}

fn reply(body: Value) -> Response {
    ([("content-type", "application/json")], body.to_string()).into_response()
}

fn refuse(code: &str) -> Response {
    (StatusCode::BAD_REQUEST, [("content-type", "application/json")], json!({"error": code}).to_string())
        .into_response()
}

fn redirect(target: String) -> Response {
    (StatusCode::FOUND, [("location", target)]).into_response()
}

async fn resource(State(shared): State<Arc<Shared>>) -> Response {
    let resource = if shared.fault == Fault::OtherResource { "http://mcp.test:1/mcp" } else { &shared.resource };
    reply(
        json!({"resource": resource, "authorization_servers": [shared.url()], "scopes_supported": ["files:read", "all"]}),
    )
}

async fn metadata(State(shared): State<Arc<Shared>>) -> Response {
    let (url, fault) = (shared.url(), shared.fault);
    if fault == Fault::Redirect {
        return redirect(format!("http://127.0.0.1:{}/metadata", shared.inner));
    }
    let token = match fault {
        Fault::PrivateEndpoint => format!("http://127.0.0.1:{}/token", shared.inner),
        _ => format!("{url}/token"),
    };
    let authorize = if fault == Fault::Script { "javascript:alert(1)".to_owned() } else { format!("{url}/authorize") };
    let mut found = json!({
        "issuer": if fault == Fault::OtherIssuer { "http://other.test" } else { &url },
        "authorization_endpoint": authorize,
        "token_endpoint": token,
        "registration_endpoint": format!("{url}/register"),
        "code_challenge_methods_supported": ["plain", "S256"],
        "scopes_supported": ["files:read", "files:write", "offline_access"],
        "client_id_metadata_document_supported": true,
        "authorization_response_iss_parameter_supported": true,
    });
    match fault {
        Fault::NoPkce => found["code_challenge_methods_supported"] = Value::Null,
        Fault::PlainPkce => found["code_challenge_methods_supported"] = json!(["plain"]),
        Fault::NoRegistration => found["registration_endpoint"] = Value::Null,
        Fault::Huge => found["padding"] = "x".repeat(1 << 20).into(),
        _ => {}
    }
    if fault == Fault::NoPkce {
        found.as_object_mut().unwrap().remove("code_challenge_methods_supported");
    }
    reply(found)
}

async fn register(State(shared): State<Arc<Shared>>, body: String) -> Response {
    shared.state.lock().unwrap().registered.push(serde_json::from_str(&body).unwrap());
    (StatusCode::CREATED, [("content-type", "application/json")], json!({"client_id": "registered"}).to_string())
        .into_response()
}

/// A person who agrees at once.
async fn authorize(State(shared): State<Arc<Shared>>, Query(query): Query<HashMap<String, String>>) -> Response {
    let fault = shared.fault;
    assert_eq!((query["response_type"].as_str(), query["code_challenge_method"].as_str()), ("code", "S256"));
    assert_eq!(query["resource"], shared.resource);
    let mut state = shared.state.lock().unwrap();
    state.clients.push(query["client_id"].clone());
    let code = format!("code-{}", state.clients.len());
    let asked = (query["code_challenge"].clone(), query["redirect_uri"].clone(), query["scope"].clone());
    state.codes.insert(code.clone(), asked);
    let mut target = Url::parse(&query["redirect_uri"]).unwrap();
    let url = shared.url();
    let mut pairs = target.query_pairs_mut();
    pairs.append_pair("state", if fault == Fault::OtherState { "another" } else { &query["state"] });
    if fault == Fault::Denied {
        pairs.append_pair("error", "access_denied");
    } else {
        pairs.append_pair("code", &code);
    }
    if fault != Fault::NoIss {
        pairs.append_pair("iss", if fault == Fault::OtherIss { "http://other.test" } else { &url });
    }
    if fault == Fault::TwiceIss {
        pairs.append_pair("iss", "http://other.test");
    }
    drop(pairs);
    redirect(target.into())
}

async fn token(State(shared): State<Arc<Shared>>, body: String) -> Response {
    let form: HashMap<String, String> = parse(body.as_bytes()).into_owned().collect();
    let mut state = shared.state.lock().unwrap();
    state.forms.push(form.clone());
    match shared.fault {
        Fault::TokenRedirect => return redirect(format!("http://127.0.0.1:{}/token", shared.inner)),
        Fault::Echo => return refuse(&body),
        _ => {}
    }
    if form["resource"] != shared.resource {
        return refuse("invalid_target");
    }
    match form["grant_type"].as_str() {
        "authorization_code" => {
            let Some((challenge, redirect, scope)) = state.codes.remove(&form["code"]) else {
                return refuse("invalid_grant");
            };
            let verifier = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
            if verifier != challenge || form["redirect_uri"] != redirect {
                return refuse("invalid_grant");
            }
            state.scope = scope;
            shared.issue(&mut state)
        }
        "refresh_token" if !state.refresh.is_empty() && form["refresh_token"] == state.refresh => {
            shared.issue(&mut state)
        }
        _ => refuse("invalid_grant"),
    }
}
