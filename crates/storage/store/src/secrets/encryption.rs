//! Envelope encryption: AES-256-GCM with a fresh data key per value, wrapped by the key-encryption
//! key. Both layers are bound to the tenant, the secret and its version, so no ciphertext can be
//! moved to another row.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand;
use rcrt_breadcrumb::StoreError;
use uuid::Uuid;

use super::{SecretsKey, SecretsKeys};

/// How many bytes sealing adds to a value: the nonce and the tag.
pub(crate) const OVERHEAD: usize = NONCE_LEN + 16;

pub(crate) struct EnvelopeCipher {
    keys: SecretsKeys,
}

/// The secret and version that a value belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecretRef {
    pub(crate) owner_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) version: i64,
}

/// An encrypted value as it is stored. Each byte string is nonce, ciphertext, tag.
pub(crate) struct Sealed {
    pub(crate) key_id: String,
    pub(crate) wrapped_key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

impl EnvelopeCipher {
    pub(crate) fn new(keys: SecretsKeys) -> Self {
        Self { keys }
    }

    pub(crate) fn seal(&self, secret_ref: SecretRef, value: &[u8]) -> Result<Sealed, StoreError> {
        let mut data_key = [0; 32];
        rand::fill(&mut data_key).map_err(|_| StoreError::Internal("the system returned no random bytes".into()))?;
        // A newer key must be noticed here: the operator may delete the older one.
        let ring = self.keys.renewed();
        let (key_id, key) = &ring.newest;
        Ok(Sealed {
            key_id: key_id.clone(),
            wrapped_key: seal(&key.0, &secret_ref.associated_data(b"key"), &data_key)?,
            value: seal(&data_key, &secret_ref.associated_data(b"value"), value)?,
        })
    }

    pub(crate) fn open(&self, secret_ref: SecretRef, sealed: &Sealed) -> Result<Vec<u8>, StoreError> {
        let mut ring = self.keys.present();
        if ring.find(&sealed.key_id).is_none() {
            ring = self.keys.renewed();
        }
        let key = ring.find(&sealed.key_id).ok_or_else(|| {
            StoreError::SecretKeyMissing(format!(
                "the secret {} is encrypted under the key {}, which is not among this server's keys; ask the operator to \
                 put the key back, or to set the secret again",
                secret_ref.id, sealed.key_id
            ))
        })?;
        let broken =
            || StoreError::Internal(format!("secret {} cannot be opened: its row was tampered with", secret_ref.id));
        let data_key = open(&key.0, &secret_ref.associated_data(b"key"), &sealed.wrapped_key).ok_or_else(broken)?;
        open(&data_key, &secret_ref.associated_data(b"value"), &sealed.value).ok_or_else(broken)
    }
}

/// Wraps the data key of a value under another key. `None` if `from` does not decrypt it.
pub(crate) fn rewrap(secret_ref: SecretRef, from: &SecretsKey, to: &SecretsKey, wrapped: &[u8]) -> Option<Vec<u8>> {
    let associated = secret_ref.associated_data(b"key");
    seal(&to.0, &associated, &open(&from.0, &associated, wrapped)?).ok()
}

impl SecretRef {
    fn associated_data(self, layer: &[u8]) -> Vec<u8> {
        // All fields after the zero-terminated layer name have a fixed length, so the encoding is
        // unambiguous.
        let mut bytes = b"rcrt secret\0".to_vec();
        bytes.extend_from_slice(layer);
        bytes.push(0);
        bytes.extend_from_slice(self.owner_id.as_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        bytes.extend_from_slice(&self.version.to_be_bytes());
        bytes
    }
}

fn seal(key: &[u8], associated: &[u8], value: &[u8]) -> Result<Vec<u8>, StoreError> {
    let failed = |_| StoreError::Internal("encryption failed".into());
    let mut sealed = value.to_vec();
    let nonce = RandomizedNonceKey::new(&AES_256_GCM, key)
        .and_then(|key| key.seal_in_place_append_tag(Aad::from(associated), &mut sealed))
        .map_err(failed)?;
    Ok([nonce.as_ref().as_slice(), &sealed].concat())
}

fn open(key: &[u8], associated: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, ciphertext) = sealed.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut ciphertext = ciphertext.to_vec();
    let key = RandomizedNonceKey::new(&AES_256_GCM, key).ok()?;
    key.open_in_place(nonce, Aad::from(associated), &mut ciphertext).ok().map(|value| value.to_vec())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_value_decrypts_only_for_its_own_reference() {
        let cipher = EnvelopeCipher::new(SecretsKey::from_bytes([7; 32]).into());
        let secret_ref = SecretRef { owner_id: Uuid::new_v4(), id: Uuid::new_v4(), version: 3 };
        let seal = || cipher.seal(secret_ref, b"s3cret").unwrap();
        assert_eq!(cipher.open(secret_ref, &seal()).unwrap(), b"s3cret");
        for other in [
            SecretRef { owner_id: Uuid::new_v4(), ..secret_ref },
            SecretRef { id: Uuid::new_v4(), ..secret_ref },
            SecretRef { version: 4, ..secret_ref },
        ] {
            assert!(cipher.open(other, &seal()).is_err());
        }
        assert!(EnvelopeCipher::new(SecretsKey::from_bytes([8; 32]).into()).open(secret_ref, &seal()).is_err());
    }

    #[test]
    fn older_keys_decrypt_and_the_newest_encrypts() {
        let key = |byte| SecretsKey::from_bytes([byte; 32]);
        let secret_ref = SecretRef { owner_id: Uuid::new_v4(), id: Uuid::new_v4(), version: 1 };
        let old = EnvelopeCipher::new(key(1).into()).seal(secret_ref, b"value").unwrap();
        let both = EnvelopeCipher::new(SecretsKeys::new(key(2), vec![key(1)]));
        assert_eq!(both.open(secret_ref, &old).unwrap(), b"value");
        let new = both.seal(secret_ref, b"value").unwrap();
        assert_eq!(new.key_id, key(2).id());

        let wrapped = rewrap(secret_ref, &key(1), &key(2), &old.wrapped_key).unwrap();
        let moved = Sealed { key_id: key(2).id(), wrapped_key: wrapped, value: old.value.clone() };
        assert_eq!(EnvelopeCipher::new(key(2).into()).open(secret_ref, &moved).unwrap(), b"value");
        assert!(rewrap(secret_ref, &key(3), &key(2), &old.wrapped_key).is_none());
    }

    #[test]
    fn an_unknown_key_reloads_the_key_ring() {
        let key = |byte| SecretsKey::from_bytes([byte; 32]);
        let secret_ref = SecretRef { owner_id: Uuid::new_v4(), id: Uuid::new_v4(), version: 1 };
        let later = std::sync::Mutex::new(Some(vec![key(2), key(1)]));
        let cipher =
            EnvelopeCipher::new(SecretsKeys::renewed_by(key(1), Vec::new(), move || later.lock().unwrap().take()));
        let elsewhere = EnvelopeCipher::new(key(2).into()).seal(secret_ref, b"value").unwrap();
        assert_eq!(cipher.open(secret_ref, &elsewhere).unwrap(), b"value");
        assert_eq!(cipher.seal(secret_ref, b"value").unwrap().key_id, key(2).id());
    }

    #[test]
    fn ciphertexts_differ_and_do_not_contain_the_value() {
        let cipher = EnvelopeCipher::new(SecretsKey::from_bytes([7; 32]).into());
        let secret_ref = SecretRef { owner_id: Uuid::nil(), id: Uuid::nil(), version: 1 };
        let (one, other) = (cipher.seal(secret_ref, b"value").unwrap(), cipher.seal(secret_ref, b"value").unwrap());
        assert_ne!(one.value, other.value);
        assert_ne!(one.wrapped_key, other.wrapped_key);
        assert!(!one.value.windows(5).any(|window| window == b"value"));
    }
}
