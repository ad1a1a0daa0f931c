//! The record of a server, `mcp.server.v1`.

use std::collections::BTreeMap;
use std::time::Duration;

use rcrt_breadcrumb::{MAX_TIMEOUT_MS, Violations, is_secret_name, read_typed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

/// The most tools that are allowed or denied by name.
const MAX_NAMES: usize = 1000;
/// The most arguments, variables and headers.
const MAX_PARTS: usize = 200;
const MAX_NAME: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// The first part of its tools' names. It is unique in the tenant, regardless of case.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub transport: Transport,
    /// `false`: it is not connected, and its tools are retired.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub enabled: bool,
    /// If present, only these of its tools are registered, whatever `denied_tools` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    /// To connect, and for each list.
    #[serde(default = "connect_timeout", skip_serializing_if = "is_connect_timeout")]
    pub connect_timeout_ms: u64,
    /// Of one call.
    #[serde(default = "tool_timeout", skip_serializing_if = "is_tool_timeout")]
    pub tool_timeout_ms: u64,
    /// Attempts of a call whose connection broke, for tools that say that a repeat has no further
    /// effect.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub max_attempts: u32,
    /// Whether the server is believed when it says that a tool changes or destroys nothing. By
    /// default it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_annotations: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub elicitation: Elicitation,
}

/// How the forms are answered that a server sends for a person during a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Elicitation {
    /// They are declined.
    #[default]
    Decline,
    /// A form is accepted with the defaults of its fields, and declined if that leaves a required
    /// field empty.
    Defaults,
    /// The form is the result of the call, and the caller answers it with another call. Servers
    /// before 2026-07-28 cannot wait for that, so theirs are declined.
    Ask,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Transport {
    /// A program in the jail, which speaks on its standard input and output.
    Stdio {
        /// A name in the search path of the jail, or an absolute path that the jail shows.
        command: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        /// `${NAME}` stands for the secret `NAME`, which must be readable and granted to the
        /// record.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// It uses this machine's network, without the rules of the egress gate.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        network: bool,
        #[serde(default = "memory", skip_serializing_if = "is_memory")]
        memory_mb: u64,
    },
    /// Streamable HTTP, through the egress gate.
    Http {
        url: Url,
        /// `${NAME}` stands for the secret `NAME`, which must be bound to the host and granted to
        /// the record.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        auth: Option<Auth>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Auth {
    /// `Authorization: Bearer` with this secret.
    Bearer { secret: String },
    /// `Authorization: Bearer` with an access token. The secret has the tokens that `rcrt mcp
    /// login` got, and runners renew them.
    OAuth { secret: String },
}

impl Auth {
    pub fn secret(&self) -> &str {
        match self {
            Self::Bearer { secret } | Self::OAuth { secret } => secret,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_default(value: &Elicitation) -> bool {
    *value == Elicitation::default()
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
fn is_true(value: &bool) -> bool {
    *value
}

fn connect_timeout() -> u64 {
    30_000
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_connect_timeout(value: &u64) -> bool {
    *value == connect_timeout()
}

fn tool_timeout() -> u64 {
    60_000
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_tool_timeout(value: &u64) -> bool {
    *value == tool_timeout()
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(value: &u32) -> bool {
    *value == 1
}

fn memory() -> u64 {
    2048
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_memory(value: &u64) -> bool {
    *value == memory()
}

impl ServerConfig {
    /// A server with the defaults.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            description: None,
            transport,
            enabled: true,
            allowed_tools: None,
            denied_tools: Vec::new(),
            connect_timeout_ms: connect_timeout(),
            tool_timeout_ms: tool_timeout(),
            max_attempts: 1,
            trust_annotations: false,
            elicitation: Elicitation::default(),
        }
    }

    /// Reads the context of a record, with every violation.
    pub fn read(context: &Map<String, Value>) -> Result<Self, Violations> {
        let config: Self =
            read_typed(Value::Object(context.clone())).map_err(|violation| Violations(vec![violation]))?;
        config.check()?;
        Ok(config)
    }

    /// The context of its record.
    pub fn context(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(context)) => context,
            _ => Map::new(),
        }
    }

    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if !is_server_name(&self.name) {
            found.add(
                "name",
                "must be 1 to 64 letters, digits, _, . and -, begin with a letter or digit, and not contain __",
            );
        }
        for (field, names) in
            [("allowed_tools", self.allowed_tools.as_deref()), ("denied_tools", Some(&*self.denied_tools))]
        {
            if names.is_some_and(|names| names.len() > MAX_NAMES) {
                found.add(field, format!("must have at most {MAX_NAMES} names"));
            }
        }
        let mut within = |field: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                found.add(field, format!("is {value}; must be from {low} to {high}"));
            }
        };
        within("connect_timeout_ms", self.connect_timeout_ms, 100, 300_000);
        within("tool_timeout_ms", self.tool_timeout_ms, 100, MAX_TIMEOUT_MS);
        within("max_attempts", self.max_attempts.into(), 1, 10);
        if let Transport::Stdio { memory_mb, .. } = &self.transport {
            within("transport.memory_mb", *memory_mb, 64, 65_536);
        }
        self.transport.check(&mut found);
        found.into_result()
    }

    /// Whether this tool of the server is registered.
    pub fn offers(&self, tool: &str) -> bool {
        match &self.allowed_tools {
            Some(allowed) => allowed.iter().any(|name| name == tool),
            None => !self.denied_tools.iter().any(|name| name == tool),
        }
    }

    pub fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.connect_timeout_ms)
    }
}

impl Transport {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
        }
    }

    /// What is run or connected to, in one line for a person.
    pub fn describe(&self) -> String {
        match self {
            Self::Stdio { command, args, env, network, .. } => {
                let words = std::iter::once(command).chain(args).map(|word| quoted(word));
                let env = env.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
                let line: Vec<String> = env.chain(words).collect();
                let access = if *network { "with this machine's network" } else { "without a network" };
                format!("{} (in the jail, {access})", line.join(" "))
            }
            Self::Http { url, .. } => url.to_string(),
        }
    }

    /// The secrets that it names, each once.
    pub fn secrets(&self) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Self::Stdio { env, .. } => env.values().flat_map(|value| placeholders(value)).collect(),
            Self::Http { headers, auth, .. } => {
                let auth = auth.iter().map(|auth| auth.secret().to_owned());
                headers.values().flat_map(|value| placeholders(value)).chain(auth).collect()
            }
        };
        names.sort_unstable();
        names.dedup();
        names
    }

    fn check(&self, found: &mut Violations) {
        let check_text = |found: &mut Violations, field: &str, text: &str| {
            if text.contains('\0') || text.len() > 100_000 {
                found.add(field, "must have at most 100,000 bytes and no NUL character");
            }
        };
        match self {
            Self::Stdio { command, args, env, .. } => {
                if command.trim().is_empty() {
                    found.add("transport.command", "must not be empty");
                }
                check_text(found, "transport.command", command);
                if args.len() > MAX_PARTS || env.len() > MAX_PARTS {
                    found.add("transport", format!("must have at most {MAX_PARTS} arguments and variables"));
                }
                for (index, argument) in args.iter().enumerate().take(MAX_PARTS) {
                    check_text(found, &format!("transport.args[{index}]"), argument);
                }
                for (name, value) in env.iter().take(MAX_PARTS) {
                    let field = format!("transport.env.{name}");
                    if !is_secret_name(name) {
                        found.add(&field, "must be named with letters, digits and _, and must not begin with a digit");
                    }
                    check_text(found, &field, value);
                }
            }
            Self::Http { url, headers, auth } => {
                if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
                    found.add("transport.url", "must start with http:// or https:// and name a host");
                }
                if !url.username().is_empty() || url.password().is_some() {
                    found.add("transport.url", "must not contain a user name or password; use auth or headers");
                }
                if headers.len() > MAX_PARTS {
                    found.add("transport.headers", format!("must have at most {MAX_PARTS} entries"));
                }
                for (name, value) in headers.iter().take(MAX_PARTS) {
                    let field = format!("transport.headers.{name}");
                    let is_value = http::HeaderValue::from_str(value).is_ok();
                    if http::HeaderName::try_from(name.as_str()).is_err() || !is_value {
                        found.add(field, "must be a header field that HTTP can send");
                    } else if is_reserved(name) {
                        found.add(field, "is set by the protocol; leave it out");
                    }
                }
                if auth.as_ref().is_some_and(|auth| !is_secret_name(auth.secret())) {
                    found.add("transport.auth.secret", "must be the name of a secret");
                }
            }
        }
    }
}

/// Headers that the transport itself sets.
fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["accept", "content-type", "content-length", "host", "last-event-id"].contains(&name.as_str())
        || name.starts_with("mcp-")
}

/// 1 to 64 letters, digits, `_`, `.` and `-`, beginning with a letter or digit, without `__`.
fn is_server_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
        && !name.contains("__")
}

/// The names in `${NAME}`.
fn placeholders(text: &str) -> Vec<String> {
    pieces(text).into_iter().filter_map(|piece| piece.err().map(str::to_owned)).collect()
}

/// A text and, as errors, the names of the placeholders in it, in order.
pub fn pieces(text: &str) -> Vec<Result<&str, &str>> {
    let mut found = Vec::new();
    let (mut rest, mut start) = (text, 0);
    while let Some(at) = rest[start..].find("${") {
        let open = start + at;
        match rest[open + 2..].find('}') {
            Some(length) if is_secret_name(&rest[open + 2..open + 2 + length]) => {
                found.push(Ok(&rest[..open]));
                found.push(Err(&rest[open + 2..open + 2 + length]));
                (rest, start) = (&rest[open + 3 + length..], 0);
            }
            _ => start = open + 2,
        }
    }
    found.push(Ok(rest));
    found
}

/// A word as a shell would need it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,${}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.chars().filter(|c| !c.is_control()).collect::<String>().replace('\'', r"'\''"))
}
