//! The working folder, and how a path of a caller becomes an open file in it.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use breadcrumb::{ErrorCode, ToolFailure};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType, Metadata, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use serde_json::json;

use crate::Settings;
use crate::arguments::invalid;
use crate::failure::{failed, is_way_out, of_io, outside, shown};

/// Bytes of a path.
const MAX_PATH: usize = 4096;
/// Entries of a folder that a message lists.
const LISTED: usize = 100;
/// Entries of a folder that are looked at for that.
const LOOKED_AT: usize = 10_000;

pub struct WorkingFolder {
    path: PathBuf,
    in_jail: Option<PathBuf>,
    min_free: u64,
}

/// A path of a caller, relative to the working folder. Not yet looked up: it may lead anywhere until it is opened.
pub struct ToolPath {
    /// As the caller knows it.
    pub text: String,
    pub path: PathBuf,
}

impl WorkingFolder {
    pub fn new(settings: &Settings) -> Self {
        Self { path: settings.folder.clone(), in_jail: settings.in_jail.clone(), min_free: settings.min_free }
    }

    /// Opens the folder, made for this program's user alone where it is not there. Every call opens it anew, so that one
    /// that the operator replaced is found.
    pub fn open(&self) -> Result<Dir, ToolFailure> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .and_then(|()| Dir::open_ambient_dir(&self.path, ambient_authority()))
            .map_err(|error| failed(format!("the working folder cannot be opened: {error}")))
    }

    /// The same for writing so many bytes: refused where too little would be left on the disk.
    pub fn open_for(&self, bytes: u64) -> Result<Dir, ToolFailure> {
        const MB: u64 = 1_000_000;
        let dir = self.open()?;
        if self.min_free == 0 {
            return Ok(dir);
        }
        let disk = rustix::fs::fstatvfs(&dir)
            .map_err(|error| failed(format!("the disk of the working folder cannot be looked at: {error}")))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free.saturating_sub(bytes) >= self.min_free {
            return Ok(dir);
        }
        let message = format!(
            "the disk has {} MB left, and {} MB of it must stay free (--min-free-disk-mb)",
            free / MB,
            self.min_free / MB
        );
        let details = json!({"limit": "free_disk_bytes", "allowed": self.min_free});
        Err(ToolFailure::new(ErrorCode::ResourceExhausted, message).with_details(details).retryable(true))
    }

    /// Reads a path. An absolute one below the working folder is taken as well, by either of its names.
    pub fn tool_path(&self, text: &str) -> Result<ToolPath, ToolFailure> {
        if text.is_empty() {
            return Err(invalid("path: must name a file, such as notes/plan.md"));
        }
        if text.contains('\0') {
            return Err(invalid("path: must not contain a NUL character"));
        }
        if text.len() > MAX_PATH {
            return Err(invalid(format!("path: has {} bytes; at most {MAX_PATH} are possible", text.len())));
        }
        let path = Path::new(text);
        let path = if path.is_absolute() { self.below(path).ok_or_else(|| outside(text))? } else { path.to_owned() };
        // What nothing is left of is the folder itself.
        let path = if path.components().next().is_none() { PathBuf::from(".") } else { path };
        Ok(ToolPath { text: text.to_owned(), path })
    }

    fn below(&self, path: &Path) -> Option<PathBuf> {
        let folder = std::path::absolute(&self.path).ok()?;
        let names = [Some(folder.clone()), self.in_jail.clone(), folder.canonicalize().ok()];
        names.into_iter().flatten().find_map(|name| path.strip_prefix(name).ok().map(Path::to_owned))
    }
}

impl ToolPath {
    /// Refuses what can only be a folder; for writing.
    pub fn check_is_file(&self) -> Result<(), ToolFailure> {
        let names_folder = self.text.ends_with(['/', '\\'])
            || !matches!(self.path.components().next_back(), Some(Component::Normal(_)))
            || self.text.ends_with("/.");
        if names_folder {
            return Err(invalid(format!("path: {} names a folder, not a file", shown(&self.text))));
        }
        Ok(())
    }

    /// What is there, links followed inside of the folder; `None` where there is nothing.
    pub fn metadata(&self, dir: &Dir) -> Result<Option<Metadata>, ToolFailure> {
        match dir.metadata(&self.path) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(of_io(&self.text, "cannot be looked at", &error)),
        }
    }

    /// Says so where a link on the path leads out of the folder: to make folders through it fails in another way.
    pub fn leads_out(&self, dir: &Dir) -> Option<ToolFailure> {
        self.path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()).find_map(|folder| {
            let error = dir.metadata(folder).err()?;
            is_way_out(&error).then(|| outside(&self.text))
        })
    }

    /// Opens a plain file that is there.
    pub fn open(&self, dir: &Dir, options: &mut OpenOptions, what: &str) -> Result<File, ToolFailure> {
        // Looked at before it is opened: to open a device can already do something.
        match self.metadata(dir)? {
            None => return Err(self.missing(dir)),
            Some(metadata) => self.check_plain(dir, &metadata)?,
        }
        // Whoever puts a pipe there now does not make us wait for its other end.
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
                entries(dir, &self.path).map_or_else(|_| String::new(), |entries| format!("; it holds {entries}"));
            return Err(failed(format!("{path} is a folder{holds}")));
        }
        Err(failed(format!("{path} is {}, not a file", kind(metadata.file_type()))))
    }

    /// There is nothing: says what is in the nearest folder that is there.
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
                return failed(format!("there is no file {path}; {name} holds {entries}"));
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
        "something special"
    }
}

/// The names in a folder, those of folders with `/`.
fn entries(dir: &Dir, path: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in dir.read_dir(path)?.take(LOOKED_AT) {
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
