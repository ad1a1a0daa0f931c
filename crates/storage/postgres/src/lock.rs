use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::{PostgresError, at, ownership};

/// How long a process that is exiting may keep its lock.
const DYING: Duration = Duration::from_secs(2);
/// The interval between two attempts.
const RETRY: Duration = Duration::from_millis(20);

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

    /// Returns whether the process still runs its program. True if this cannot be found out.
    fn is_alive(&self) -> bool {
        if self.pid == 0 || !Path::new("/proc/self/stat").exists() {
            return true;
        }
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.pid)).unwrap_or_default();
        let (line, stat, status) = (read("cmdline"), read("stat"), read("status"));
        let program = line.split('\0').next().and_then(|path| Path::new(path).file_name()?.to_str());
        if program != self.command.split(' ').next() {
            return false;
        }
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let is_exiting = fields
            .get(FLAGS - STATE)
            .and_then(|flags| flags.parse::<u64>().ok())
            .is_some_and(|flags| flags & EXITING != 0);
        let pending = status.lines().filter_map(|line| line.strip_prefix("SigPnd:").or(line.strip_prefix("ShdPnd:")));
        let mut pending = pending.filter_map(|signals| u64::from_str_radix(signals.trim(), 16).ok());
        let is_killed = pending.any(|signals| signals & KILLED != 0);
        !matches!(fields.first(), None | Some(&("Z" | "X" | ""))) && !is_exiting && !is_killed
    }
}

/// The numbers of these fields in `/proc/<pid>/stat`.
const STATE: usize = 3;
const FLAGS: usize = 9;
/// The kernel's flag of a process that is exiting.
const EXITING: u64 = 4;
/// The bit of SIGKILL in a set of signals.
const KILLED: u64 = 1 << 8;

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
    /// Creates the folder if needed, readable by its owner only, and locks it. Returns the holder
    /// if it is locked. A killed process holds its locks until its memory is freed, so this waits
    /// up to two seconds for a holder that is exiting. Blocks.
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
        let begun = Instant::now();
        let mut seen_alive = 0;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(at("lock", &path)(source)),
            }
            let mut text = String::new();
            // The holder might not have written its details yet.
            let holder = match file.rewind().and_then(|()| file.read_to_string(&mut text)) {
                Ok(_) => serde_json::from_str(&text).unwrap_or_default(),
                Err(_) => LockHolder::default(),
            };
            // A process that begins to exit looks alive for a moment.
            seen_alive = if holder.is_alive() { seen_alive + 1 } else { 0 };
            if seen_alive > 2 || begun.elapsed() > DYING {
                return Err(PostgresError::Held { data_dir, holder: Box::new(holder) });
            }
            std::thread::sleep(RETRY);
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
