//! OAuth 2.1 for servers of streamable HTTP. A person logs in once, with a [`Login`]. The
//! [`Tokens`] are the value of a secret, and the runners renew them.
//!
//! Every request goes through an egress gate, and none follows a redirect. What a server publishes
//! is not trusted: each URL must be as safe as that of the MCP server, PKCE and the issuer are
//! required, and no message contains a text of an authorization server.
//!
//! Begin with `login.rs`.

mod challenge;
mod client;
mod discovery;
mod gate;
mod issued;
mod login;
mod tokens;

pub use gate::Gate;
pub use login::{Attempt, Login, LoginOptions};
pub use tokens::Tokens;
pub(crate) use tokens::now;

/// Why a login or the renewal of a token failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OAuthError {
    /// A request failed, or the egress gate refused it.
    #[error("{0}")]
    Unreachable(String),
    /// What a server published or sent cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// An error code of the standards.
    #[error("the authorization server refused it with the error {0}")]
    Denied(&'static str),
}

fn unusable(why: impl Into<String>) -> OAuthError {
    OAuthError::Unusable(why.into())
}
