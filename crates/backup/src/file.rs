//! The file: a line that says what it is, the manifest as one line, the archive, and the SHA-256 of all that before it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};

use crate::{BackupError, Manifest, at};

const MAGIC: &str = "RCRT backup\n";
/// A line break, the checksum in hexadecimal digits, a line break.
const TRAILER: u64 = 66;
/// The longest manifest that is read: one is some hundred bytes.
const LONGEST_MANIFEST: u64 = 1024 * 1024;

/// A file that is being written. It gets its name when it is whole; until then it ends on `.partial`.
pub(crate) struct Draft {
    path: PathBuf,
    draft: PathBuf,
    file: File,
    digest: Context,
}

impl Draft {
    pub(crate) fn begin(path: &Path, manifest: &Manifest) -> Result<Self, BackupError> {
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
        let mut begun = Self { path: path.to_owned(), draft, file, digest: Context::new(&SHA256) };
        let manifest = serde_json::to_string(manifest).map_err(|error| at(path)(error.into()))?;
        begun.add(format!("{MAGIC}{manifest}\n").as_bytes())?;
        Ok(begun)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.digest.update(bytes);
        self.file.write_all(bytes).map_err(at(&self.draft))
    }

    /// Gives the file's length in bytes.
    pub(crate) fn finish(mut self) -> Result<u64, BackupError> {
        let trailer = format!("\n{}\n", hexadecimal(self.digest.finish().as_ref()));
        self.file.write_all(trailer.as_bytes()).map_err(at(&self.draft))?;
        self.file.sync_all().map_err(at(&self.draft))?;
        let length = self.file.metadata().map_err(at(&self.draft))?.len();
        // A link and not a renaming: what somebody else has put there meanwhile stays.
        std::fs::hard_link(&self.draft, &self.path).map_err(at(&self.path))?;
        std::fs::remove_file(&self.draft).map_err(at(&self.draft))?;
        Ok(length)
    }

    pub(crate) fn give_up(self) {
        // Whoever looks finds a name that says it all.
        let _ = std::fs::remove_file(&self.draft);
    }
}

/// A backup whose checksum is right.
#[derive(Debug)]
pub struct Backup {
    pub manifest: Manifest,
    path: PathBuf,
    archive_from: u64,
    archive_to: u64,
}

impl Backup {
    /// The archive, from its first byte to its last.
    pub(crate) fn archive(&self) -> Result<impl Read + Send + use<>, BackupError> {
        let mut file = File::open(&self.path).map_err(at(&self.path))?;
        file.seek(SeekFrom::Start(self.archive_from)).map_err(at(&self.path))?;
        Ok(file.take(self.archive_to - self.archive_from))
    }
}

/// Reads the whole file, to see that it is as it was written.
pub fn open(path: &Path) -> Result<Backup, BackupError> {
    let file = File::open(path).map_err(at(path))?;
    let length = file.metadata().map_err(at(path))?.len();
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let no_backup = || BackupError::NoBackup { path: path.to_owned() };
    let damaged = |what| BackupError::Damaged { path: path.to_owned(), what };

    let mut magic = [0; MAGIC.len()];
    reader.read_exact(&mut magic).map_err(|_| no_backup())?;
    if magic != MAGIC.as_bytes() {
        return Err(no_backup());
    }
    let mut line = Vec::new();
    (&mut reader).take(LONGEST_MANIFEST).read_until(b'\n', &mut line).map_err(at(path))?;
    let archive_from = (MAGIC.len() + line.len()) as u64;
    let Some(archive_to) = length.checked_sub(TRAILER).filter(|to| *to >= archive_from && line.ends_with(b"\n")) else {
        return Err(damaged("it is cut off"));
    };
    let mut digest = Context::new(&SHA256);
    digest.update(&magic);
    digest.update(&line);
    let mut archive = (&mut reader).take(archive_to - archive_from);
    loop {
        let part = archive.fill_buf().map_err(at(path))?;
        let read = part.len();
        if read == 0 {
            break;
        }
        digest.update(part);
        archive.consume(read);
    }
    let mut trailer = String::new();
    reader.read_to_string(&mut trailer).map_err(|_| damaged("it is cut off"))?;
    if trailer != format!("\n{}\n", hexadecimal(digest.finish().as_ref())) {
        return Err(damaged("its checksum is another, so it was cut off or changed"));
    }
    let format = serde_json::from_slice::<Format>(&line).map_err(|_| no_backup())?.format;
    if format != Manifest::FORMAT {
        return Err(BackupError::Format { path: path.to_owned(), format });
    }
    let manifest = serde_json::from_slice(&line).map_err(|_| no_backup())?;
    Ok(Backup { manifest, path: path.to_owned(), archive_from, archive_to })
}

/// The one member that every format has.
#[derive(serde::Deserialize)]
struct Format {
    format: u32,
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}
