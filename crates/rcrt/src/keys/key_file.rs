//! The keys of a data folder's secrets in one file, as a backup of the keys.

use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use store::SecretsKey;

use super::files::{self, KEY_BYTES};
use super::{KeyKind, Keyring, Keys};
use crate::exit::Failure;

#[derive(Serialize, Deserialize)]
pub struct KeyFile {
    /// In hexadecimal digits, the one in use first.
    secrets: Vec<String>,
}

impl KeyFile {
    pub fn of(keys: &Keys) -> anyhow::Result<Self> {
        let keys = keys.ring(KeyKind::Secrets).load()?;
        Ok(Self { secrets: keys.iter().map(|(_, key)| breadcrumb::hex(key)).collect() })
    }

    /// To a file that only its owner may read, and that is not there yet.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        if path.exists() {
            return Err(Failure::Refused(format!("{} is there already", path.display())).into());
        }
        files::put(path, format!("{}\n", serde_json::to_string(self)?).as_bytes())
            .with_context(|| format!("the keys cannot be written to {}", path.display()))
    }

    /// Refuses what is no file of keys.
    pub fn read(path: impl AsRef<Path>) -> anyhow::Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read(path).with_context(|| format!("the keys in {} cannot be read", path.display()))?;
        let Ok(read) = serde_json::from_slice::<Self>(&text) else {
            bail!("{} is no file of keys; `rcrt backup --include-key` writes one", path.display());
        };
        if read.secrets.is_empty() || read.secrets.iter().any(|text| bytes(text).is_none()) {
            bail!("{} holds a key that is none: each has {} hexadecimal digits", path.display(), 2 * KEY_BYTES);
        }
        Ok(read)
    }

    /// The keys with their ids.
    pub fn with_ids(&self) -> Vec<(String, [u8; KEY_BYTES])> {
        self.keys().map(|key| (SecretsKey::from_bytes(key).id(), key)).collect()
    }

    fn keys(&self) -> impl Iterator<Item = [u8; KEY_BYTES]> {
        self.secrets.iter().filter_map(|text| bytes(text))
    }

    /// Puts them into a data folder, beside the keys that it has.
    pub fn admit(&self, data: &Path) -> anyhow::Result<()> {
        self.keys().try_for_each(|key| Keyring::admit(data, KeyKind::Secrets, &key))
    }
}

fn bytes(text: &str) -> Option<[u8; KEY_BYTES]> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (digits.len() == 2 * KEY_BYTES).then(|| bytes.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_through_a_file_into_another_folder() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let keys = Keys::load(from.path()).unwrap();
        keys.ring(KeyKind::Secrets).rotate().unwrap();
        let path = from.path().join("all.keys");
        KeyFile::of(&keys).unwrap().write(&path).unwrap();
        assert!(KeyFile::of(&keys).unwrap().write(&path).is_err(), "nothing is written over");
        KeyFile::read(&path).unwrap().admit(to.path()).unwrap();
        let there = Keys::load(to.path()).unwrap().ring(KeyKind::Secrets).load().unwrap();
        assert_eq!(there, keys.ring(KeyKind::Secrets).load().unwrap());
        assert_eq!(KeyFile::read(&path).unwrap().with_ids(), there);
    }

    #[test]
    fn what_is_no_file_of_keys_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        for text in ["", "{}", r#"{"secrets": []}"#, r#"{"secrets": ["abc"]}"#, r#"{"secrets": ["zz"]}"#] {
            std::fs::write(&path, text).unwrap();
            assert!(KeyFile::read(&path).is_err(), "{text}");
        }
    }
}
