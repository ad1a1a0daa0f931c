//! Which secrets a tool needs, and the state of each.

use rcrt_breadcrumb::{SecretInfo, SecretUnavailable, Secrets, StoreError};
use uuid::Uuid;

/// The tenant's secrets, or `None` if the token cannot list them.
pub struct KnownSecrets(Option<Vec<SecretInfo>>);

/// A secret that a tool needs.
pub struct RequiredSecret<'n> {
    pub name: &'n str,
    secret: Option<&'n SecretInfo>,
    pub lack: Option<SecretUnavailable>,
}

impl KnownSecrets {
    pub async fn read(store: &dyn Secrets) -> Result<Self, StoreError> {
        match store.secrets().await {
            Ok(secrets) => Ok(Self(Some(secrets))),
            Err(StoreError::Forbidden(_)) => Ok(Self(None)),
            Err(error) => Err(error),
        }
    }

    /// The state of each named secret for this version of a tool's record. `None` if the token
    /// cannot list secrets.
    pub fn needs<'n>(&'n self, tool: Option<(Uuid, i64)>, names: &'n [String]) -> Option<Vec<RequiredSecret<'n>>> {
        let known = self.0.as_ref()?;
        let need = |name: &'n String| {
            let secret = known.iter().find(|secret| secret.name == *name);
            RequiredSecret { name, secret, lack: SecretUnavailable::check(tool, secret) }
        };
        Some(names.iter().map(need).collect())
    }
}

impl RequiredSecret<'_> {
    pub fn is_readable(&self) -> bool {
        self.secret.is_some_and(|secret| secret.readable)
    }

    /// `API_KEY (for api.example.com)`, or the problem in brackets.
    pub fn describe(&self) -> String {
        let state = match (self.lack, self.secret) {
            (Some(SecretUnavailable::Missing), _) | (None, None) => "MISSING".into(),
            (Some(SecretUnavailable::NotGranted), _) => "NOT GRANTED".into(),
            (Some(SecretUnavailable::NewerOnly), _) => "GRANTED TO A NEWER VERSION".into(),
            (Some(SecretUnavailable::Unbound), _) => "BOUND TO NO HOST".into(),
            (None, Some(secret)) if secret.readable => "readable".into(),
            (None, Some(secret)) => format!("for {}", secret.hosts.join(", ")),
        };
        format!("{} ({state})", self.name)
    }
}
