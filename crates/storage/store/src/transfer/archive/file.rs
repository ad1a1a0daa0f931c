//! One file of an archive. It has its name only when it is complete and on disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use chrono::Utc;
use flate2::Compression;
use flate2::write::GzEncoder;
use rcrt_breadcrumb::StoreError;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::unwritten;
use crate::database::failure::Result;
use crate::transfer::line::{Head, Line};

pub(super) struct ArchiveFile {
    to: GzEncoder<BufWriter<File>>,
    /// Where it is until it is complete.
    unfinished: PathBuf,
    path: PathBuf,
    records: u64,
}

impl ArchiveFile {
    /// Begins the file of this name below the folder, which is created if it does not exist.
    pub(super) async fn create(folder: &Path, name: &str, tenant: &str) -> Result<Self> {
        let path = folder.join(name);
        let head = Head {
            format: Head::FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            tenant: tenant.to_owned(),
            made_at: Utc::now(),
            reserves_curators_tag: true,
        };
        on_disk(path, move |path| {
            let mut file = Self::open(path)?;
            file.line(&Line::Export(head))?;
            Ok(file)
        })
        .await
    }

    fn open(path: PathBuf) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::from(io::ErrorKind::InvalidFilename));
        };
        if !folder.is_dir() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            // A new folder survives a crash only if the one above it is on disk too.
            folder.parent().map_or(Ok(()), sync)?;
        }
        let name = name.to_string_lossy();
        remove_unfinished(folder, &name)?;
        // Its own name, because a server that lost its lock may still write one.
        let unfinished = folder.join(format!(".{name}.{}", Uuid::new_v4()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        let to = GzEncoder::new(BufWriter::new(file), Compression::default());
        Ok(Self { to, unfinished, path, records: 0 })
    }

    /// Appends these lines.
    pub(super) async fn put(mut self, lines: Vec<Line>) -> Result<Self> {
        on_disk(self.path.clone(), move |_| {
            for line in lines {
                self.records += u64::from(matches!(line, Line::Record(_)));
                self.line(&line)?;
            }
            Ok(self)
        })
        .await
    }

    /// Appends the last line, and gives the file its name when all of it is on disk.
    pub(super) async fn finish(mut self) -> Result<()> {
        on_disk(self.path.clone(), move |path| {
            self.line(&Line::End { records: self.records, versions: 0 })?;
            let file = self.to.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            fs::rename(&self.unfinished, &path)?;
            path.parent().map_or(Ok(()), sync)
        })
        .await
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, line)?;
        self.to.write_all(b"\n")
    }
}

/// Removes what an attempt that did not end left of the file.
fn remove_unfinished(folder: &Path, name: &str) -> io::Result<()> {
    let prefix = format!(".{name}.");
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Does this where a slow disk delays nobody else.
async fn on_disk<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce(PathBuf) -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let at = path.clone();
    match spawn_blocking(move || work(path)).await {
        Ok(done) => done.map_err(|error| unwritten(&at, &error)),
        Err(ended) => Err(StoreError::Internal(format!("writing an archive ended: {ended}")).into()),
    }
}
