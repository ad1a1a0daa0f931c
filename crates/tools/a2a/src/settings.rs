//! The operator's settings, and the file of well-known agents.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use url::Url;

/// The fewest bytes of a header's value that is kept from tools: a shorter one would occur in other
/// text by chance.
const MIN_VALUE: usize = rcrt_breadcrumb::MIN_OPAQUE_BYTES;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Agents that the operator knows. They cannot be unregistered. Default: none.
    pub well_known: Vec<WellKnown>,
    /// The origins at which this installation itself is reached, such as `http://127.0.0.1:8080`:
    /// it does not invoke itself. Default: none.
    pub own_origins: Vec<String>,
    /// The URL by which agents reach this installation's server, without a slash at the end. Agents
    /// that send push notifications get it with each message. Default: none, so they get none.
    pub public_url: Option<String>,
    /// The time to the first look at a task, which doubles up to `longest_poll`. Default 1 s.
    pub first_poll: Duration,
    /// Default 15 s.
    pub longest_poll: Duration,
    /// The same for a task whose time is up. Default 1 min.
    pub late_poll: Duration,
    /// For how long a late reply is waited for. Default 24 h.
    pub keep_late: Duration,
    /// How long another runner can leave a task alone before this one looks at it. Default 30 s.
    pub help_after: Duration,
    /// How long an answer of an agent can take. Default 30 s.
    pub request_time: Duration,
    /// How long a question of an agent waits for its answer. Default 24 h.
    pub answer_time: Duration,
    /// How long a task that has ended is kept. Default 30 days.
    pub keep_ended: Duration,
    /// How often a card is read again, unless its agent says that it is valid for a shorter time.
    /// Default 4 h.
    pub refresh_every: Duration,
    /// The shortest time between two reads of a card, whatever the agent says. Also the pause after
    /// a read that failed. Default 5 min.
    pub shortest_refresh: Duration,
    /// How often it is checked which cards are to be read. Default 1 min.
    pub check_cards: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            well_known: Vec::new(),
            own_origins: Vec::new(),
            public_url: None,
            first_poll: Duration::from_secs(1),
            longest_poll: Duration::from_secs(15),
            late_poll: Duration::from_mins(1),
            keep_late: Duration::from_hours(24),
            help_after: Duration::from_secs(30),
            request_time: Duration::from_secs(30),
            answer_time: Duration::from_hours(24),
            keep_ended: Duration::from_hours(24 * 30),
            refresh_every: Duration::from_hours(4),
            shortest_refresh: Duration::from_mins(5),
            check_cards: Duration::from_mins(1),
        }
    }
}

impl Settings {
    /// How long a card is valid. `max_age`: as its agent says.
    pub(crate) fn valid_for(&self, max_age: Option<Duration>) -> Duration {
        max_age.map_or(self.refresh_every, |age| age.max(self.shortest_refresh).min(self.refresh_every))
    }
}

/// An agent that the operator knows.
#[derive(Clone)]
pub struct WellKnown {
    pub name: String,
    pub url: Url,
    /// The name and the value of a header that each request to the agent has.
    pub header: Option<(String, String)>,
}

impl std::fmt::Debug for WellKnown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WellKnown").field("name", &self.name).field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// A file of well-known agents cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WellKnownError {
    #[error("the file is not a JSON array of agents, each with agentName and url: {0}")]
    Json(String),
    #[error("agent {agent:?}: {problem}")]
    Agent { agent: String, problem: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    agent_name: String,
    url: String,
    auth_header_name: Option<String>,
    auth_header_value_base64: Option<String>,
}

impl WellKnown {
    /// Reads a `well-known-agents.json`.
    pub fn read_all(text: &str) -> Result<Vec<Self>, WellKnownError> {
        let entries: Vec<Entry> =
            serde_json::from_str(text).map_err(|error| WellKnownError::Json(error.to_string()))?;
        let mut all: Vec<Self> = Vec::new();
        for entry in entries {
            let agent = entry.agent_name.clone();
            let wrong = |problem: String| WellKnownError::Agent { agent: agent.clone(), problem };
            let known = Self::read(entry).map_err(&wrong)?;
            if all.iter().any(|other| other.name.eq_ignore_ascii_case(&known.name)) {
                return Err(wrong("agentName occurs twice; give each agent its own".into()));
            }
            all.push(known);
        }
        Ok(all)
    }

    fn read(entry: Entry) -> Result<Self, String> {
        if !crate::agent::is_name(&entry.agent_name) {
            return Err(crate::agent::NAME_RULE.into());
        }
        let url = Url::parse(&entry.url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or("url must be an absolute http or https URL")?;
        let header = match (entry.auth_header_name, entry.auth_header_value_base64) {
            (None, None) => None,
            (Some(name), Some(value)) => {
                let value = STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                let value = value.ok_or("authHeaderValueBase64 must be base64 of a text")?;
                if value.len() < MIN_VALUE {
                    return Err(format!("authHeaderValueBase64 must decode to {MIN_VALUE} bytes or more"));
                }
                Some((name, value))
            }
            _ => return Err("authHeaderName and authHeaderValueBase64 belong together; give both or none".into()),
        };
        Ok(Self { name: entry.agent_name, url, header })
    }
}
