//! The working folder, and how a caller's path becomes an open file in it.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType, Metadata, OpenOptions, OpenOptionsExt};
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::builtin::{FolderContent, MAX_ENTRIES};
use rustix::fs::OFlags;
use serde_json::json;

use crate::Settings;
use crate::failure::{failed, invalid, is_outside_folder, of_io, outside, shown};

/// The maximum length of a path, in bytes.
const MAX_PATH: usize = 4096;
/// The maximum number of entries of a folder that a message lists.
const LISTED: usize = 100;
/// The maximum number of entries that are read for such a list.
const MAX_SCANNED: usize = 10_000;
const MB: u64 = 1_000_000;

pub struct WorkingFolder {
    path: PathBuf,
    in_jail: Option<PathBuf>,
    min_free: u64,
    most_bytes: u64,
}

/// A caller's path, relative to the working folder. It is checked only when it is opened, and could
/// lead anywhere until then.
pub struct ToolPath {
    /// The path as the caller wrote it.
    pub text: String,
    pub path: PathBuf,
}

impl WorkingFolder {
    pub fn new(settings: &Settings) -> Self {
        Self {
            path: settings.folder.clone(),
            in_jail: settings.in_jail.clone(),
            min_free: settings.min_free,
            most_bytes: settings.most_bytes,
        }
    }

    /// Opens the folder, and creates it for the program's user alone if it does not exist. Every
    /// call opens it again, because the operator can replace it.
    pub fn open(&self) -> Result<Dir, ToolFailure> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .and_then(|()| Dir::open_ambient_dir(&self.path, ambient_authority()))
            .map_err(|error| failed(format!("the working folder cannot be opened: {error}")))
    }

    /// The same before a write of this many bytes. Fails if too little space would be left on the
    /// disk, or if the folder would hold too much.
    pub fn open_for(&self, bytes: u64) -> Result<Dir, ToolFailure> {
        let dir = self.open()?;
        if self.min_free > 0 {
            let disk = rustix::fs::fstatvfs(&dir)
                .map_err(|error| failed(format!("the disk of the working folder cannot be inspected: {error}")))?;
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            if free.saturating_sub(bytes) < self.min_free {
                let message = format!(
                    "the disk has {} MB left, and {} MB must stay free (--min-free-disk-mb)",
                    free / MB,
                    self.min_free / MB
                );
                return Err(exhausted(message, "free_disk_bytes", self.min_free).retryable(true));
            }
        }
        if self.most_bytes > 0 {
            let content = FolderContent::read(&self.path)
                .map_err(|error| failed(format!("the working folder cannot be measured: {error}")))?;
            if content.bytes.saturating_add(bytes) > self.most_bytes {
                let message = format!(
                    "the working folder has {} MB of the {} MB that it may have (--workdir-mb)",
                    content.bytes / MB,
                    self.most_bytes / MB
                );
                return Err(exhausted(message, "workdir_bytes", self.most_bytes));
            }
            if content.entries > MAX_ENTRIES {
                let message = format!("the working folder has more than {MAX_ENTRIES} files and folders");
                return Err(exhausted(message, "workdir_entries", MAX_ENTRIES as u64));
            }
        }
        Ok(dir)
    }

    /// Parses a path. An absolute path below the working folder is accepted too, under either name
    /// of the folder.
    pub fn tool_path(&self, text: &str) -> Result<ToolPath, ToolFailure> {
        if text.is_empty() {
            return Err(invalid("path: must name a file, such as notes/plan.md"));
        }
        if text.contains('\0') {
            return Err(invalid("path: must not contain a NUL character"));
        }
        if text.len() > MAX_PATH {
            return Err(invalid(format!("path: has {} bytes; at most {MAX_PATH} are allowed", text.len())));
        }
        let path = Path::new(text);
        let path = if path.is_absolute() { self.below(path).ok_or_else(|| outside(text))? } else { path.to_owned() };
        // An empty path is the folder itself.
        let path = if path.components().next().is_none() { PathBuf::from(".") } else { path };
        Ok(ToolPath { text: text.to_owned(), path })
    }

    fn below(&self, path: &Path) -> Option<PathBuf> {
        let folder = std::path::absolute(&self.path).ok()?;
        let names = [Some(folder.clone()), self.in_jail.clone(), folder.canonicalize().ok()];
        names.into_iter().flatten().find_map(|name| path.strip_prefix(name).ok().map(Path::to_owned))
    }
}

fn exhausted(message: String, limit: &str, allowed: u64) -> ToolFailure {
    let details = json!({"limit": limit, "allowed": allowed});
    ToolFailure::new(ErrorCode::ResourceExhausted, message).with_details(details)
}

impl ToolPath {
    /// Refuses a path that can only be a folder. Used before writes.
    pub fn check_is_file(&self) -> Result<(), ToolFailure> {
        let names_folder = self.text.ends_with(['/', '\\'])
            || !matches!(self.path.components().next_back(), Some(Component::Normal(_)))
            || self.text.ends_with("/.");
        if names_folder {
            return Err(invalid(format!("path: {} names a folder, not a file", shown(&self.text))));
        }
        Ok(())
    }

    /// The metadata of the file, with links followed inside the folder; `None` if nothing exists
    /// there.
    pub fn metadata(&self, dir: &Dir) -> Result<Option<Metadata>, ToolFailure> {
        match dir.metadata(&self.path) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(of_io(&self.text, "cannot be inspected", &error)),
        }
    }

    /// The failure if a link on the path leads out of the folder. Creating folders through such a
    /// link fails with a less specific error.
    pub fn escapes_folder(&self, dir: &Dir) -> Option<ToolFailure> {
        self.path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()).find_map(|folder| {
            let error = dir.metadata(folder).err()?;
            is_outside_folder(&error).then(|| outside(&self.text))
        })
    }

    /// Opens an existing regular file.
    pub fn open(&self, dir: &Dir, options: &mut OpenOptions, what: &str) -> Result<File, ToolFailure> {
        // Checked before it is opened: opening a device can have an effect.
        match self.metadata(dir)? {
            None => return Err(self.missing(dir)),
            Some(metadata) => self.check_plain(dir, &metadata)?,
        }
        // Opening a pipe that was put there meanwhile must not block.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = dir
            .open_with(&self.path, options.custom_flags(flags.bits().cast_signed()))
            .map_err(|error| of_io(&self.text, what, &error))?;
        let metadata = file.metadata().map_err(|error| of_io(&self.text, what, &error))?;
        self.check_plain(dir, &metadata)?;
        Ok(file)
    }

    fn check_plain(&self, dir: &Dir, metadata: &Metadata) -> Result<(), ToolFailure> {
        let path = shown(&self.text);
        if metadata.is_file() {
            return Ok(());
        }
        if metadata.is_dir() {
            let holds =
                entries(dir, &self.path).map_or_else(|_| String::new(), |entries| format!("; it contains {entries}"));
            return Err(failed(format!("{path} is a folder{holds}")));
        }
        Err(failed(format!("{path} is {}, not a file", kind(metadata.file_type()))))
    }

    /// The failure for a missing file. It lists the nearest folder that exists.
    pub fn missing(&self, dir: &Dir) -> ToolFailure {
        let path = shown(&self.text);
        for folder in self.path.ancestors().skip(1) {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            if let Ok(entries) = entries(dir, folder) {
                let name = if folder == Path::new(".") {
                    "the working folder".to_owned()
                } else {
                    format!("the folder {}", shown(&folder.to_string_lossy()))
                };
                return failed(format!("there is no file {path}; {name} contains {entries}"));
            }
        }
        failed(format!("there is no file {path}"))
    }
}

fn kind(kind: FileType) -> &'static str {
    use cap_std::fs::FileTypeExt;
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "a special file"
    }
}

/// The names in a folder; those of folders end with `/`.
fn entries(dir: &Dir, path: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in dir.read_dir(path)?.take(MAX_SCANNED) {
        let entry = entry?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        names.push(format!("{}{}", shown(&entry.file_name().to_string_lossy()), if is_folder { "/" } else { "" }));
    }
    if names.is_empty() {
        return Ok("nothing".to_owned());
    }
    names.sort();
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    let listed = names.join(", ");
    Ok(if more > 0 { format!("{listed} and {more} more") } else { listed })
}
