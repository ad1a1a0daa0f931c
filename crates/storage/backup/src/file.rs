//! The file format: a magic line, the manifest as one line, the archive, the SHA-256 of everything
//! before it, and the HMAC of that sum under the [key](BackupKey) that the manifest names. The sum
//! detects damage; the HMAC detects changes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, Digest, SHA256};
use rcrt_breadcrumb::hex;

use crate::{BackupError, BackupKey, Manifest, at};

const MAGIC: &str = "RCRT backup\n";
/// A line break, the checksum in hexadecimal digits, a line break.
const SUM: u64 = 66;
/// The tag in hexadecimal digits, a line break.
const TAG: u64 = 65;
/// Bytes of a manifest that are read. A real one has some hundred bytes.
const LONGEST_MANIFEST: u64 = 1024 * 1024;
/// The format before backups were authenticated.
const UNAUTHENTICATED: u32 = 1;

/// A file that is being written. Its name ends in `.partial` until it is complete.
pub(crate) struct Draft {
    path: PathBuf,
    draft: PathBuf,
    file: File,
    digest: Context,
    key: BackupKey,
}

impl Draft {
    pub(crate) fn begin(path: &Path, manifest: &Manifest, key: &BackupKey) -> Result<Self, BackupError> {
        if path.exists() {
            return Err(BackupError::Exists { path: path.to_owned() });
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let draft = PathBuf::from(name);
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(at(&draft)(error)),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(at(&draft))?;
        let digest = Context::new(&SHA256);
        let mut begun = Self { path: path.to_owned(), draft, file, digest, key: key.clone() };
        let manifest =
            Manifest { format: Manifest::FORMAT, authenticated_by: Some(key.id().to_owned()), ..manifest.clone() };
        let manifest = serde_json::to_string(&manifest).map_err(|error| at(path)(error.into()))?;
        begun.add(format!("{MAGIC}{manifest}\n").as_bytes())?;
        Ok(begun)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.digest.update(bytes);
        self.file.write_all(bytes).map_err(at(&self.draft))
    }

    /// Returns the file's length in bytes.
    pub(crate) fn finish(mut self) -> Result<u64, BackupError> {
        let sum = self.digest.finish();
        let tag = self.key.tag(sum.as_ref());
        let trailer = format!("\n{}\n{}\n", hex(sum.as_ref()), hex(tag.as_ref()));
        self.file.write_all(trailer.as_bytes()).map_err(at(&self.draft))?;
        self.file.sync_all().map_err(at(&self.draft))?;
        let length = self.file.metadata().map_err(at(&self.draft))?.len();
        // A link instead of a rename, because a rename would overwrite a file that was created
        // meanwhile.
        std::fs::hard_link(&self.draft, &self.path).map_err(at(&self.path))?;
        std::fs::remove_file(&self.draft).map_err(at(&self.draft))?;
        Ok(length)
    }

    pub(crate) fn give_up(self) {
        // Best effort: the suffix `.partial` marks a file that remains.
        let _ = std::fs::remove_file(&self.draft);
    }
}

/// What a backup must prove before it is opened.
#[derive(Debug, Clone, Copy)]
pub enum Proof<'k> {
    /// One of these keys wrote it.
    Keys(&'k [BackupKey]),
    /// Only that it is not damaged. Anybody who could write to the file then controls the restored
    /// database: agents, roles, tools and grants. Also accepts the format from before backups were
    /// authenticated.
    Undamaged,
}

/// A backup that passed the requested [`Proof`].
#[derive(Debug)]
pub struct Backup {
    pub manifest: Manifest,
    path: PathBuf,
    /// The magic line and the manifest line, as read.
    head: Vec<u8>,
    archive_to: u64,
    sum: Digest,
}

impl Backup {
    /// Opens the archive at its first byte.
    pub(crate) fn archive(&self) -> Result<Archive, BackupError> {
        let mut file = File::open(&self.path).map_err(at(&self.path))?;
        let from = self.head.len() as u64;
        file.seek(SeekFrom::Start(from)).map_err(at(&self.path))?;
        let mut digest = Context::new(&SHA256);
        digest.update(&self.head);
        Ok(Archive { file: file.take(self.archive_to - from), digest, sum: self.sum })
    }
}

/// Reads an archive, and checks that it did not change after the backup was opened.
pub(crate) struct Archive {
    file: std::io::Take<File>,
    digest: Context,
    sum: Digest,
}

impl Archive {
    /// Returns the next part, empty at the end. Returns the last part only if nothing changed since
    /// the backup was opened.
    pub(crate) fn part(&mut self) -> std::io::Result<Vec<u8>> {
        let mut part = Vec::with_capacity(256 * 1024);
        (&mut self.file).take(256 * 1024).read_to_end(&mut part)?;
        self.digest.update(&part);
        let is_last = self.file.limit() == 0 || part.is_empty();
        if is_last && self.digest.clone().finish().as_ref() != self.sum.as_ref() {
            return Err(std::io::Error::new(ErrorKind::InvalidData, "the backup was changed while it was read"));
        }
        Ok(part)
    }
}

/// Reads the whole file and checks that it is undamaged, and, for [`Proof::Keys`], which key wrote
/// it.
pub fn open(path: &Path, proof: Proof<'_>) -> Result<Backup, BackupError> {
    let file = File::open(path).map_err(at(path))?;
    let length = file.metadata().map_err(at(path))?.len();
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let not_a_backup = || BackupError::NoBackup { path: path.to_owned() };
    let damaged = |what| BackupError::Damaged { path: path.to_owned(), what };

    let mut head = vec![0; MAGIC.len()];
    reader.read_exact(&mut head).map_err(|_| not_a_backup())?;
    if head != MAGIC.as_bytes() {
        return Err(not_a_backup());
    }
    (&mut reader).take(LONGEST_MANIFEST).read_until(b'\n', &mut head).map_err(at(path))?;
    if !head[MAGIC.len()..].ends_with(b"\n") {
        return Err(damaged("it is truncated"));
    }
    let line = &head[MAGIC.len()..];
    // The manifest is not verified yet. It is only used to find the end of the archive.
    let manifest = read_manifest(line);
    let is_authenticated = !matches!(manifest, Ok(Manifest { format: UNAUTHENTICATED, .. }));
    let trailer = if is_authenticated { SUM + TAG } else { SUM };
    let Some(archive_to) = length.checked_sub(trailer).filter(|to| *to >= head.len() as u64) else {
        return Err(damaged("it is truncated"));
    };
    let mut digest = Context::new(&SHA256);
    digest.update(&head);
    let mut archive = (&mut reader).take(archive_to - head.len() as u64);
    loop {
        let part = archive.fill_buf().map_err(at(path))?;
        let read = part.len();
        if read == 0 {
            break;
        }
        digest.update(part);
        archive.consume(read);
    }
    let mut end = String::new();
    reader.read_to_string(&mut end).map_err(|_| damaged("it is truncated"))?;
    let sum = digest.finish();
    let Some(tag) = end.strip_prefix(&format!("\n{}\n", hex(sum.as_ref()))) else {
        if let Err(Some(format)) = manifest {
            return Err(BackupError::Format { path: path.to_owned(), format });
        }
        return Err(damaged("its checksum does not match, so it was truncated or changed"));
    };
    let manifest = manifest.map_err(|format| match format {
        Some(format) => BackupError::Format { path: path.to_owned(), format },
        None => not_a_backup(),
    })?;
    if let Proof::Keys(keys) = proof {
        verify(path, &manifest, sum.as_ref(), tag, keys)?;
    }
    Ok(Backup { manifest, path: path.to_owned(), head, archive_to, sum })
}

fn verify(path: &Path, manifest: &Manifest, sum: &[u8], tag: &str, keys: &[BackupKey]) -> Result<(), BackupError> {
    let Some(id) = manifest.authenticated_by.as_ref().filter(|_| manifest.format != UNAUTHENTICATED) else {
        return Err(BackupError::Unauthenticated { path: path.to_owned() });
    };
    let Some(key) = keys.iter().find(|key| key.id() == id) else {
        return Err(BackupError::KeyMissing { path: path.to_owned(), key: id.clone() });
    };
    let tag = tag.strip_suffix('\n').and_then(from_hexadecimal);
    if tag.is_some_and(|tag| key.verifies(sum, &tag)) {
        Ok(())
    } else {
        Err(BackupError::Forged { path: path.to_owned(), key: id.clone() })
    }
}

/// The error is the format number, if the manifest names a format that this version does not know.
fn read_manifest(line: &[u8]) -> Result<Manifest, Option<u32>> {
    let Format { format } = serde_json::from_slice(line).map_err(|_| None)?;
    if !(UNAUTHENTICATED..=Manifest::FORMAT).contains(&format) {
        return Err(Some(format));
    }
    serde_json::from_slice(line).map_err(|_| None)
}

/// The one member that every format has.
#[derive(serde::Deserialize)]
struct Format {
    format: u32,
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
