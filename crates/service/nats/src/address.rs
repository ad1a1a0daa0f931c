//! The address of a server, and the credentials in it.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::Url;

use crate::NatsError;

const PORT: u16 = 4222;

/// `nats://host`, `tls://host`, with `user:password@` or `token@`.
#[derive(Clone)]
pub struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
    /// The fields of the first message that name the user.
    pub(crate) credentials: Map<String, Value>,
}

impl FromStr for Address {
    type Err = NatsError;

    fn from_str(text: &str) -> Result<Self, NatsError> {
        let url = Url::parse(text).map_err(|_| NatsError::Address)?;
        let is_tls = match url.scheme() {
            "nats" => false,
            "tls" => true,
            _ => return Err(NatsError::Address),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(NatsError::Address)?;
        // An IPv6 address has brackets in URLs only.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let decode = |text: &str| Value::from(percent_decode_str(text).decode_utf8_lossy().into_owned());
        let mut credentials = Map::new();
        match (url.username(), url.password()) {
            ("", None) => {}
            (token, None) => {
                credentials.insert("auth_token".into(), decode(token));
            }
            (user, Some(password)) => {
                credentials.insert("user".into(), decode(user));
                credentials.insert("pass".into(), decode(password));
            }
        }
        Ok(Self { host, port: url.port().unwrap_or(PORT), is_tls, credentials })
    }
}

/// Without the credentials.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
