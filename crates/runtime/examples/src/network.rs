//! The network of an example: responses for the requests that it states.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use rcrt_breadcrumb::{
    BodyStream, ExpectedRequest, FetchRequest, FetchResponse, GivenResponse, Host, HttpExchange, OpError, Redirect,
};
use rcrt_egress::NetRules;
use rcrt_validate::expected::differences;
use serde_json::{Value, json};
use url::Url;

/// The most bytes of a body that is compared or recorded.
pub(crate) const MAX_BODY: usize = 1024 * 1024;
/// The most characters of a body in a message.
const MAX_SHOWN: usize = 200;

pub(crate) struct ExampleNetwork {
    rules: NetRules,
    exchanges: Vec<HttpExchange>,
    /// How often each exchange was used.
    used: Vec<u32>,
}

/// A request of the tool, with its whole body.
pub(crate) struct SentRequest {
    method: String,
    url: Url,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl SentRequest {
    /// Reads the body to its end.
    pub async fn read(request: FetchRequest, body: Option<BodyStream>) -> Result<Self, OpError> {
        let url = Url::parse(&request.url)
            .map_err(|error| OpError::new("TypeError", format!("{:?} is not a URL: {error}", request.url)))?;
        let mut bytes = BytesMut::new();
        if let Some(mut stream) = body {
            while let Some(piece) = stream.next().await {
                bytes.extend_from_slice(&piece?);
                if bytes.len() > MAX_BODY {
                    let message = format!("a request's body in an example can have at most {MAX_BODY} bytes");
                    return Err(OpError::new("ResourceExhausted", message));
                }
            }
        }
        Ok(Self { method: request.method, url, headers: request.headers, body: bytes.freeze() })
    }

    /// As JSON, to be compared with another request. The order and the case of header fields have
    /// no meaning.
    pub fn as_json(&self) -> Value {
        let mut headers: Vec<(String, &str)> =
            self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.trim())).collect();
        headers.sort_unstable();
        json!({"method": self.method, "url": self.url.as_str(), "headers": headers, "body": self.body_text()})
    }

    /// The request again, to be sent.
    pub fn into_request(self, redirect: Redirect) -> (FetchRequest, Option<BodyStream>) {
        let Self { method, url, headers, body } = self;
        let body = (!body.is_empty()).then(|| -> BodyStream { futures::stream::iter([Ok(body)]).boxed() });
        (FetchRequest { method, url: url.into(), headers, redirect }, body)
    }

    fn body_text(&self) -> Value {
        String::from_utf8_lossy(&self.body).into_owned().into()
    }

    /// The body as JSON, if it is compared with JSON.
    fn body_as(&self, expected: &Value) -> Value {
        let is_text = expected.is_string() || expected.get("$regex").is_some();
        if is_text {
            return self.body_text();
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|_| self.body_text())
    }

    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let body: String = text.chars().take(MAX_SHOWN).collect();
        let body = if body.is_empty() { String::new() } else { format!(" with the body {body:?}") };
        format!("{} {}{body}", self.method, self.url)
    }
}

impl ExampleNetwork {
    /// The error names an entry of the tool's `permissions.net` that cannot be read.
    pub fn new(rules: NetRules, exchanges: &[HttpExchange]) -> Self {
        Self { rules, exchanges: exchanges.to_vec(), used: vec![0; exchanges.len()] }
    }

    /// As the egress gate: a host that the tool does not name is refused.
    pub fn check(&self, url: &Url) -> Result<(), OpError> {
        let host = Host::of(url).ok_or_else(|| OpError::new("TypeError", "the URL has no host"))?;
        let port = url.port_or_known_default().unwrap_or(443);
        self.rules.check(&host, port).map_err(|message| OpError::new("PermissionDenied", message))
    }

    /// The response of the first unused exchange whose request is like this one; if all are used,
    /// that of the last.
    pub fn answer(&mut self, request: &SentRequest) -> Result<FetchResponse, OpError> {
        self.check(&request.url)?;
        let fits = |at: &usize| mismatches(&self.exchanges[*at].request, request).is_empty();
        let matching: Vec<usize> = (0..self.exchanges.len()).filter(fits).collect();
        let unused = matching.iter().find(|at| self.used[**at] == 0);
        let Some(at) = unused.or(matching.last()).copied() else {
            return Err(OpError::new("TypeError", self.unmatched(request)));
        };
        self.used[at] += 1;
        let given = &self.exchanges[at].response;
        match &given.error {
            Some(message) => Err(OpError::new("TypeError", message.as_str())),
            None => Ok(response(given, &request.url)),
        }
    }

    /// The requests that the example states and the tool did not make.
    pub fn unused(&self) -> Vec<String> {
        let named = |(exchange, used): (&HttpExchange, &u32)| {
            (*used == 0).then(|| format!("{} {}", exchange.request.method, exchange.request.url))
        };
        self.exchanges.iter().zip(&self.used).filter_map(named).collect()
    }

    fn unmatched(&self, request: &SentRequest) -> String {
        let nearest = self.exchanges.iter().map(|exchange| (exchange, mismatches(&exchange.request, request)));
        match nearest.min_by_key(|(_, found)| found.len()) {
            None => format!("the example states no request; the tool made {}", request.shown()),
            Some((exchange, found)) => format!(
                "the example does not state the request {}; the nearest is {} {}, where {}",
                request.shown(),
                exchange.request.method,
                exchange.request.url,
                found.join("; ")
            ),
        }
    }
}

/// Why a request is not the expected one.
fn mismatches(expected: &ExpectedRequest, request: &SentRequest) -> Vec<String> {
    let mut found = Vec::new();
    if !expected.method.eq_ignore_ascii_case(&request.method) {
        found.push(format!("the method is {}", expected.method));
    }
    let wanted = Url::parse(&expected.url).ok();
    if wanted.as_ref() != Some(&request.url) {
        found.push("the URL differs".to_owned());
        if wanted.as_ref().map(Url::path) != Some(request.url.path()) {
            found.push("the path differs".to_owned());
        }
        if wanted.as_ref().and_then(Url::host_str) != request.url.host_str() {
            found.push("the host differs".to_owned());
        }
    }
    for (name, value) in &expected.headers {
        let sent = request.headers.iter().find(|(sent, _)| sent.eq_ignore_ascii_case(name));
        let sent = sent.map_or(Value::Null, |(_, value)| value.as_str().into());
        if !differences(value, &sent).is_empty() {
            found.push(format!("the header {name} differs"));
        }
    }
    if let Some(body) = &expected.body {
        let of_body = differences(body, &request.body_as(body));
        found.extend(of_body.into_iter().map(|one| format!("the body at {} {}", one.path, one.message)));
    }
    found
}

fn response(given: &GivenResponse, url: &Url) -> FetchResponse {
    let mut headers: Vec<(String, String)> =
        given.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    let body = match &given.body {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        json => {
            if !headers.iter().any(|(name, _)| name == "content-type") {
                headers.push(("content-type".to_owned(), "application/json".to_owned()));
            }
            json.to_string()
        }
    };
    let pieces = if body.is_empty() { Vec::new() } else { vec![Ok(Bytes::from(body))] };
    FetchResponse {
        status: given.status,
        status_text: String::new(),
        headers,
        url: url.to_string(),
        redirected: false,
        body: futures::stream::iter(pieces).boxed(),
    }
}

/// `{"error": {code, message}}`, as a report shows a failure.
pub(crate) fn shown_failure(code: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message}})
}
