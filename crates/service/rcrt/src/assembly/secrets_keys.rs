//! Refuses keys that do not decrypt all secrets of the database.

use std::collections::BTreeSet;

use anyhow::{Context, bail};

use crate::keys::{KeyKind, Keys};
use crate::output::counted;

/// How many secrets a message names.
const NAMED: usize = 10;

/// Returns an error that names the secrets whose key is missing, and the ways out. `outcome` says
/// what was not done. `admin_url`: of the tables' owner.
pub async fn check_secrets_keys(admin_url: &str, keys: &Keys, outcome: Option<&str>) -> anyhow::Result<()> {
    let ring = keys.ring(KeyKind::Secrets);
    let lost =
        rcrt_store::secrets_under_other_keys(admin_url, &ring.ids()?).await.context("the store cannot be opened")?;
    if lost.is_empty() {
        return Ok(());
    }
    let ids: BTreeSet<&str> = lost.iter().map(|secret| secret.key_id.as_str()).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let mut names: Vec<String> = lost.iter().take(NAMED).map(ToString::to_string).collect();
    if lost.len() > NAMED {
        names.push(format!("and {} more", lost.len() - NAMED));
    }
    let file = ring.present();
    let state = if file.exists() { "is another key" } else { "does not exist" };
    bail!(
        "{} encrypted under the key {}, which is not in {} ({} {state}): {}. Copy the files of the folder `keys` from the \
         data folder of another server of this database, or from a backup of that folder. If the key is lost, `rcrt keys \
         rewrap --lose-secrets` deletes these secrets{}",
        counted(lost.len() as u64, "secret is", "secrets are"),
        ids.join(" and the key "),
        ring.folder().display(),
        file.display(),
        names.join(", "),
        outcome.map(|outcome| format!("; {outcome}")).unwrap_or_default()
    );
}
