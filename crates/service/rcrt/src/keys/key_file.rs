//! The keys of a data folder's secrets in one file, as a backup.

use std::path::Path;

use anyhow::{Context, bail};
use rcrt_store::SecretsKey;
use serde::{Deserialize, Serialize};

use super::files::{self, KEY_BYTES};
use super::{KeyKind, Keyring, Keys};

#[derive(Serialize, Deserialize)]
pub struct KeyFile {
    /// In hexadecimal digits, the current key first.
    secrets: Vec<String>,
}

impl KeyFile {
    pub fn of(keys: &Keys) -> anyhow::Result<Self> {
        let keys = keys.ring(KeyKind::Secrets).load()?;
        Ok(Self { secrets: keys.iter().map(|(_, key)| rcrt_breadcrumb::hex(key)).collect() })
    }

    /// Writes a new file that only its owner can read.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        if path.exists() {
            bail!("{} already exists", path.display());
        }
        files::put(path, format!("{}\n", serde_json::to_string(self)?).as_bytes())
            .with_context(|| format!("the keys cannot be written to {}", path.display()))
    }

    /// Reads a file of keys, and checks its format.
    pub fn read(path: impl AsRef<Path>) -> anyhow::Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read(path).with_context(|| format!("the keys in {} cannot be read", path.display()))?;
        let Ok(read) = serde_json::from_slice::<Self>(&text) else {
            bail!("{} is not a file of keys; `rcrt backup --include-key` writes one", path.display());
        };
        if read.secrets.is_empty() || read.secrets.iter().any(|text| bytes(text).is_none()) {
            bail!("{} has an invalid key; each key has {} hexadecimal digits", path.display(), 2 * KEY_BYTES);
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

    /// Adds the keys to those of a data folder.
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
    fn keys_are_copied_through_a_file_to_another_folder() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let keys = Keys::load(from.path()).unwrap();
        keys.ring(KeyKind::Secrets).rotate().unwrap();
        let path = from.path().join("all.keys");
        KeyFile::of(&keys).unwrap().write(&path).unwrap();
        assert!(KeyFile::of(&keys).unwrap().write(&path).is_err(), "an existing file is not overwritten");
        KeyFile::read(&path).unwrap().admit(to.path()).unwrap();
        let there = Keys::load(to.path()).unwrap().ring(KeyKind::Secrets).load().unwrap();
        assert_eq!(there, keys.ring(KeyKind::Secrets).load().unwrap());
        assert_eq!(KeyFile::read(&path).unwrap().with_ids(), there);
    }

    #[test]
    fn an_invalid_file_of_keys_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        for text in ["", "{}", r#"{"secrets": []}"#, r#"{"secrets": ["abc"]}"#, r#"{"secrets": ["zz"]}"#] {
            std::fs::write(&path, text).unwrap();
            assert!(KeyFile::read(&path).is_err(), "{text}");
        }
    }
}
