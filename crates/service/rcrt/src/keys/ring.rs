//! The files of one kind of key. Each step is one rename or one link, so that a crash leaves a
//! usable set of keys.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rcrt_server::TokenKey;
use rcrt_store::SecretsKey;

use super::files::{self, KEY_BYTES};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum KeyKind {
    /// The keys that sign tokens
    Tokens,
    /// The keys that encrypt secrets
    Secrets,
}

/// The files of one kind in one folder.
#[derive(Debug, Clone)]
pub struct Keyring {
    folder: PathBuf,
    kind: KeyKind,
}

/// An older key that was deleted.
pub struct DroppedKey {
    pub id: String,
}

impl Keyring {
    pub(super) fn new(folder: &Path, kind: KeyKind) -> Self {
        Self { folder: folder.to_owned(), kind }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of the current key.
    pub fn present(&self) -> PathBuf {
        self.folder.join(format!("{}.key", self.name()))
    }

    fn next(&self) -> PathBuf {
        self.folder.join(format!("{}-next.key", self.name()))
    }

    fn name(&self) -> &'static str {
        match self.kind {
            KeyKind::Tokens => "token",
            KeyKind::Secrets => "secrets",
        }
    }

    /// The keys with their ids: the current one, then the others.
    pub fn load(&self) -> anyhow::Result<Vec<(String, [u8; KEY_BYTES])>> {
        let mut keys = Vec::new();
        for path in std::iter::once(self.present()).chain(self.others()?) {
            let key = match files::read(&path) {
                Ok(key) => key,
                // The file was deleted or renamed after the listing.
                Err(_) if path != self.present() && !path.exists() => continue,
                Err(error) => return Err(error),
            };
            let id = self.id(&key)?;
            if !keys.iter().any(|(known, _)| *known == id) {
                keys.push((id, key));
            }
        }
        Ok(keys)
    }

    /// The ids of all keys, the current one first. There can be none.
    pub fn ids(&self) -> anyhow::Result<Vec<String>> {
        let present = Some(self.present()).filter(|path| path.exists());
        let mut ids = Vec::new();
        for path in present.into_iter().chain(self.others()?) {
            let id = self.id(&files::read(&path)?)?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    fn id(&self, key: &[u8; KEY_BYTES]) -> anyhow::Result<String> {
        Ok(match self.kind {
            KeyKind::Tokens => TokenKey::from_bytes(key)?.newest_id(),
            KeyKind::Secrets => SecretsKey::from_bytes(*key).id(),
        })
    }

    /// The other key files of this kind.
    fn others(&self) -> anyhow::Result<Vec<PathBuf>> {
        let prefix = format!("{}-", self.name());
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("the folder {} cannot be read", self.folder.display()))?,
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "key"))
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)))
            .collect();
        paths.sort();
        Ok(paths)
    }

    /// Creates the next key, which already verifies and decrypts but is not used yet. Returns its
    /// file, for other servers of the same store.
    pub fn prepare(&self) -> anyhow::Result<PathBuf> {
        files::create(&self.next())?;
        Ok(self.next())
    }

    /// Makes the prepared key, or a new one, the current key. The previous one stays as an older
    /// key. Returns the id of the new one.
    pub fn rotate(&self) -> anyhow::Result<String> {
        let old = files::read(&self.present())?;
        let kept = self.folder.join(format!("{}-{}.key", self.name(), self.id(&old)?));
        match std::fs::hard_link(self.present(), &kept) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("the old key cannot be copied to {}", kept.display()));
            }
            _ => files::sync_folder(&kept)?,
        }
        let next = self.prepare()?;
        let id = self.id(&files::read(&next)?)?;
        std::fs::rename(&next, self.present())
            .with_context(|| format!("{} cannot be replaced", self.present().display()))?;
        files::sync_folder(&self.present())?;
        Ok(id)
    }

    /// Deletes the older keys, except those that `is_needed` and a prepared key.
    pub fn drop_older(&self, is_needed: impl Fn(&str) -> bool) -> anyhow::Result<Vec<DroppedKey>> {
        let in_use = self.id(&files::read(&self.present())?)?;
        let mut dropped = Vec::new();
        for path in self.others()?.into_iter().filter(|path| *path != self.next()) {
            let id = self.id(&files::read(&path)?)?;
            if id != in_use && is_needed(&id) {
                continue;
            }
            std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
            if id != in_use {
                dropped.push(DroppedKey { id });
            }
        }
        files::sync_folder(&self.present())?;
        Ok(dropped)
    }

    /// Adds a key to a folder: as the current key if there is none, else as an older key.
    pub fn admit(data: &Path, kind: KeyKind, key: &[u8; KEY_BYTES]) -> anyhow::Result<()> {
        let ring = Self::new(&files::private_folder(data)?, kind);
        let id = ring.id(key)?;
        if !ring.present().exists() {
            return files::put(&ring.present(), key);
        }
        if ring.load()?.iter().any(|(known, _)| *known == id) {
            return Ok(());
        }
        files::put(&ring.folder.join(format!("{}-{id}.key", ring.name())), key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    fn ids(ring: &Keyring) -> Vec<String> {
        ring.load().unwrap().into_iter().map(|(id, _)| id).collect()
    }

    #[test]
    fn a_rotation_keeps_the_old_key_until_it_is_dropped() {
        for kind in [KeyKind::Tokens, KeyKind::Secrets] {
            let data = tempfile::tempdir().unwrap();
            let ring = Keys::load(data.path()).unwrap().ring(kind);
            let first = ids(&ring);
            let second = ring.rotate().unwrap();
            assert_eq!(ids(&ring), [second.clone(), first[0].clone()]);
            let third = ring.rotate().unwrap();
            assert_eq!(ids(&ring).len(), 3);
            let dropped = ring.drop_older(|id| id == first[0]).unwrap();
            assert_eq!(dropped.into_iter().map(|one| one.id).collect::<Vec<_>>(), [second]);
            assert_eq!(ids(&ring), [third.clone(), first[0].clone()]);
            ring.drop_older(|_| false).unwrap();
            assert_eq!(ids(&ring), [third]);
            Keys::load(data.path()).unwrap();
        }
    }

    #[test]
    fn a_prepared_key_is_loaded_and_used_by_the_next_rotation() {
        let data = tempfile::tempdir().unwrap();
        let ring = Keys::load(data.path()).unwrap().ring(KeyKind::Secrets);
        let first = ids(&ring);
        let next = ring.prepare().unwrap();
        assert_eq!(ring.prepare().unwrap(), next);
        let both = ids(&ring);
        assert_eq!((both.len(), &both[0]), (2, &first[0]));
        ring.drop_older(|_| false).unwrap();
        assert_eq!(ids(&ring), both, "a prepared key is not deleted");
        assert_eq!(ring.rotate().unwrap(), both[1]);
        assert_eq!(ids(&ring), [both[1].clone(), first[0].clone()]);
    }

    #[test]
    fn an_interrupted_rotation_is_completed_by_the_next() {
        let data = tempfile::tempdir().unwrap();
        let ring = Keys::load(data.path()).unwrap().ring(KeyKind::Tokens);
        let first = ids(&ring);
        // After its first step.
        std::fs::hard_link(ring.present(), ring.folder.join(format!("token-{}.key", first[0]))).unwrap();
        assert_eq!(ids(&ring), first);
        let second = ring.rotate().unwrap();
        assert_eq!(ids(&ring), [second, first[0].clone()]);
    }

    #[test]
    fn a_watcher_returns_the_new_key_first() {
        let data = tempfile::tempdir().unwrap();
        let keys = Keys::load(data.path()).unwrap();
        let watch = super::super::watch::KeyWatcher::new(keys.ring(KeyKind::Secrets));
        let first = watch.load().unwrap();
        keys.ring(KeyKind::Secrets).rotate().unwrap();
        let changed = watch.changed().unwrap();
        assert_eq!((changed.len(), changed[1]), (2, first[0]));
    }

    #[test]
    fn opened_keys_have_no_new_key_of_secrets() {
        let data = tempfile::tempdir().unwrap();
        let keys = Keys::open(data.path()).unwrap();
        assert!(keys.ring(KeyKind::Tokens).present().exists());
        assert!(keys.ring(KeyKind::Secrets).ids().unwrap().is_empty());
        keys.create_secrets_key().unwrap();
        assert_eq!(keys.ring(KeyKind::Secrets).ids().unwrap(), ids(&keys.ring(KeyKind::Secrets)));
    }

    #[test]
    fn a_key_with_a_wrong_length_is_an_error() {
        let data = tempfile::tempdir().unwrap();
        let keys = Keys::load(data.path()).unwrap();
        std::fs::write(keys.ring(KeyKind::Secrets).present(), b"short").unwrap();
        assert!(format!("{:#}", Keys::load(data.path()).err().unwrap()).contains("5 bytes"));
    }
}
