use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::{PostgresError, at, ownership};

/// The process that owns a data folder, as written in the lock file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LockHolder {
    pub pid: u32,
    /// The program's name and subcommand. Other arguments can contain passwords and tokens.
    pub command: String,
    /// Seconds since 1970.
    pub since: u64,
    /// The address that it listens on, once it does.
    pub listening: Option<String>,
}

impl LockHolder {
    fn this_process() -> Self {
        Self {
            pid: std::process::id(),
            command: command(),
            since: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs()),
            listening: None,
        }
    }
}

/// A subcommand is the first argument and a plain word. After an option, words may be its value.
fn command() -> String {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let mut command = Path::new(&program).file_name().unwrap_or("a program".as_ref()).to_string_lossy().into_owned();
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    };
    if let Some(word) = arguments.next().and_then(|word| word.into_string().ok()).filter(|word| is_word(word)) {
        command.push(' ');
        command.push_str(&word);
    }
    command
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid == 0 {
            return write!(f, "another process");
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs());
        let seconds = now.saturating_sub(self.since);
        let age = match seconds {
            0..=119 => format!("{seconds} s"),
            120..=7199 => format!("{} min", seconds / 60),
            _ => format!("{} h", seconds / 3600),
        };
        write!(f, "process {} ({}), running for {age}", self.pid, self.command)?;
        match &self.listening {
            Some(address) => write!(f, " and listening on {address}"),
            None => Ok(()),
        }
    }
}

/// The exclusive right to use a data folder. Released when dropped, or when the process exits in
/// any way.
#[derive(Debug)]
pub struct DataLock {
    file: File,
    data_dir: PathBuf,
    holder: LockHolder,
}

impl DataLock {
    /// Creates the folder if needed, readable by its owner only, and locks it. Returns at once with
    /// the holder if it is locked.
    pub fn acquire(data_dir: &Path) -> Result<Self, PostgresError> {
        if !data_dir.exists() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(data_dir)
                .map_err(at("create the data folder", data_dir))?;
        }
        // The cluster, the socket and a leftover server are recognised by this path, so resolve
        // links in it.
        let data_dir = data_dir.canonicalize().map_err(at("find the data folder", data_dir))?;
        if !data_dir.is_dir() {
            return Err(PostgresError::NotAFolder { path: data_dir });
        }
        ownership::check_data_folder(&data_dir)?;
        std::fs::set_permissions(&data_dir, std::fs::Permissions::from_mode(0o700))
            .map_err(at("restrict the permissions of the data folder", &data_dir))?;
        let path = data_dir.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(at("open the lock file", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The holder might not have written its details yet.
                let holder = match file.read_to_string(&mut text) {
                    Ok(_) => serde_json::from_str(&text).unwrap_or_default(),
                    Err(_) => LockHolder::default(),
                };
                return Err(PostgresError::Held { data_dir, holder: Box::new(holder) });
            }
            Err(TryLockError::Error(source)) => return Err(at("lock", &path)(source)),
        }
        let mut lock = Self { file, data_dir, holder: LockHolder::this_process() };
        lock.write()?;
        Ok(lock)
    }

    /// The data folder, absolute and without links.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Writes the address that this process listens on into the lock file.
    pub fn set_listening(&mut self, address: &str) -> Result<(), PostgresError> {
        self.holder.listening = Some(address.to_owned());
        self.write()
    }

    fn write(&mut self) -> Result<(), PostgresError> {
        let text = serde_json::to_string(&self.holder).unwrap_or_default();
        let path = self.data_dir.join("lock");
        self.file
            .rewind()
            .and_then(|()| self.file.set_len(0))
            .and_then(|()| self.file.write_all(text.as_bytes()))
            .map_err(at("write the lock file", &path))
    }
}

impl Drop for DataLock {
    fn drop(&mut self) {
        // Closing is not enough: a child that is being started has a copy of the descriptor until
        // it execs.
        let _ = self.file.unlock();
    }
}
