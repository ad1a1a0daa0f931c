use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::{PostgresError, at};

/// Bytes after which the log is rotated. One old file is kept.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Lines that an error message shows.
const TAIL: usize = 12;

/// The server's log: a file of bounded size, and its last lines for error messages.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    size: u64,
    tail: Tail,
}

/// The last lines, shared with the supervisor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    pub(crate) fn text(&self) -> String {
        let lines = self.0.lock();
        if lines.is_empty() {
            "it logged nothing".to_owned()
        } else {
            lines.iter().cloned().collect::<Vec<_>>().join(" | ")
        }
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    fn push(&self, line: &str) {
        let mut lines = self.0.lock();
        if lines.len() == TAIL {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(500).collect());
    }
}

impl LogFile {
    pub(crate) fn open(path: &Path, tail: Tail) -> Result<Self, PostgresError> {
        let file = open(path).map_err(at("open", path))?;
        let size = file.metadata().map_err(at("read", path))?.len();
        Ok(Self { path: path.to_owned(), file, size, tail })
    }

    /// Reads until the server and all its children have closed their end.
    pub(crate) async fn follow(mut self, from: impl AsyncRead + Unpin) {
        let mut reader = BufReader::new(from);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line).await, Ok(read) if read > 0) {
            self.tail.push(String::from_utf8_lossy(&line).trim_end());
            // Ignore a full disk: if reading stopped, the server would block on its log.
            let _ = self.write(&line);
            line.clear();
        }
    }

    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.size > LARGEST {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            self.file = open(&self.path)?;
            self.size = 0;
        }
        self.file.write_all(line)?;
        self.size += line.len() as u64;
        Ok(())
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}
