//! Which secrets a tool needs, and the state of each.

use breadcrumb::{Breadcrumbs, SecretInfo, SecretUnavailable, StoreError};
use uuid::Uuid;

/// The tenant's secrets, as far as the token lets them be seen.
pub struct KnownSecrets(Option<Vec<SecretInfo>>);

/// One secret that a tool asks for.
pub struct RequiredSecret<'n> {
    pub name: &'n str,
    secret: Option<&'n SecretInfo>,
    pub lack: Option<SecretUnavailable>,
}

impl KnownSecrets {
    pub async fn read(store: &dyn Breadcrumbs) -> Result<Self, StoreError> {
        match store.secrets().await {
            Ok(secrets) => Ok(Self(Some(secrets))),
            Err(StoreError::Forbidden(_)) => Ok(Self(None)),
            Err(error) => Err(error),
        }
    }

    /// How this version of a tool's record stands with the secrets that it names; `None` where the token may not see
    /// them.
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

    /// `API_KEY (for api.example.com)`, or what is wrong with it.
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
