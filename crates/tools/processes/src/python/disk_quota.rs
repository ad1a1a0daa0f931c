//! The disk space of environments. It is limited for each set and in total, during the installation
//! too. Unused sets are deleted first, and an installation without enough space is terminated.

use std::fs::{self, FileTimes};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use uuid::Uuid;

use super::cleanup::{is_unfinished, unfinished_name};
use crate::disk::{DiskBounds, exhausted};

/// The most sets that are stored.
const MOST: usize = 50;
/// An installation that started longer ago than any call lasts was left by a runner that died.
const ABANDONED: Duration = Duration::from_hours(1);
/// The interval between two checks of an installation.
const LOOK: Duration = Duration::from_millis(200);
/// A check may take at most this fraction of the time.
const PART: u32 = 4;
/// The file in a set's folder with its size in bytes, so that it is measured once.
const SIZE: &str = ".bytes";
const MB: u64 = 1_000_000;

#[derive(Debug, Clone)]
pub struct DiskQuota {
    /// The folder of all environments.
    folder: PathBuf,
    bounds: DiskBounds,
}

/// An installed set.
struct InstalledSet {
    used: SystemTime,
    path: PathBuf,
    bytes: u64,
    is_in_use: bool,
}

impl DiskQuota {
    pub fn new(folder: PathBuf, bounds: DiskBounds) -> Self {
        Self { folder, bounds }
    }

    /// The largest file that an installation can write.
    pub fn largest_file(&self) -> u64 {
        self.bounds.packages_set
    }

    /// Waits until the installation in the folder `unfinished` must be terminated. `in_use` names
    /// the sets that must stay.
    pub async fn exceeded(&self, unfinished: &Path, in_use: impl Fn() -> Vec<String>) -> ToolFailure {
        loop {
            let begun = Instant::now();
            if let Err(failure) = self.check(Some(unfinished), in_use()).await {
                return failure;
            }
            tokio::time::sleep(LOOK.max(begun.elapsed() * PART)).await;
        }
    }

    /// Deletes unused sets if there is too little space. The error is for the installer of
    /// `unfinished`.
    pub async fn check(&self, unfinished: Option<&Path>, in_use: Vec<String>) -> Result<(), ToolFailure> {
        let (room, unfinished) = (self.clone(), unfinished.map(Path::to_owned));
        let looked = tokio::task::spawn_blocking(move || room.look(unfinished.as_deref(), &in_use)).await;
        looked.map_err(io::Error::other).flatten().unwrap_or_else(|error| {
            let message = format!("the space that Python packages take cannot be counted: {error}");
            Err(ToolFailure::new(ErrorCode::ExecutionFailed, message))
        })
    }

    /// Records the size of a set before it is renamed to its final name.
    pub fn note(unfinished: &Path) -> io::Result<()> {
        fs::write(unfinished.join(SIZE), bytes_in(unfinished)?.to_string())
    }

    pub fn too_large(&self) -> ToolFailure {
        let most = self.bounds.packages_set;
        let message = format!("these packages exceed the limit of {} MB for a set (--packages-set-mb)", most / MB);
        exhausted(message, "packages_set_bytes", most)
    }

    fn look(&self, unfinished: Option<&Path>, in_use: &[String]) -> io::Result<Result<(), ToolFailure>> {
        let bounds = &self.bounds;
        let mut installing = 0;
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
            let used = match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => metadata.modified()?,
                _ => continue,
            };
            let is_own = unfinished == Some(path.as_path());
            if !is_unfinished(&name) {
                let bytes = noted(&path, used)?;
                kept.push(InstalledSet { used, path, bytes, is_in_use: in_use.contains(&name) });
            } else if !is_own && used.elapsed().is_ok_and(|age| age > ABANDONED) {
                or_gone(fs::remove_dir_all(path))?;
            } else {
                let bytes = bytes_in(&path)?;
                if is_own && bytes > bounds.packages_set {
                    return Ok(Err(self.too_large()));
                }
                installing += bytes;
            }
        }
        kept.sort_by_key(|set| set.used);
        loop {
            let total = installing + kept.iter().map(|set| set.bytes).sum::<u64>();
            let refusal =
                if total > bounds.packages_total { Some(self.full()) } else { bounds.too_little_left(&self.folder)? };
            if refusal.is_none() && kept.len() <= MOST {
                return Ok(Ok(()));
            }
            // The least recently used set.
            let Some(oldest) = kept.iter().position(|set| !set.is_in_use) else {
                return Ok(refusal.map_or(Ok(()), Err));
            };
            let set = kept.remove(oldest);
            // A folder with a final name is complete or absent.
            let aside = self.folder.join(unfinished_name(Uuid::new_v4()));
            or_gone(fs::rename(set.path, &aside))?;
            or_gone(fs::remove_dir_all(aside))?;
        }
    }

    fn full(&self) -> ToolFailure {
        let most = self.bounds.packages_total;
        let message = format!(
            "the package sets in use exceed the total limit of {} MB (--packages-total-mb); try again later",
            most / MB
        );
        exhausted(message, "packages_total_bytes", most).retryable(true)
    }
}

/// The size of a set, measured if it is not recorded yet. `used` is its last use, which is
/// preserved.
fn noted(set: &Path, used: SystemTime) -> io::Result<u64> {
    let note = set.join(SIZE);
    if let Some(bytes) = fs::read_to_string(&note).ok().and_then(|text| text.trim().parse().ok()) {
        return Ok(bytes);
    }
    let bytes = bytes_in(set)?;
    let remembered = fs::write(note, bytes.to_string())
        .and_then(|()| fs::File::open(set)?.set_times(FileTimes::new().set_modified(used)));
    or_gone(remembered)?;
    Ok(bytes)
}

/// A missing folder was removed by another call or another runner.
fn or_gone(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// The disk space of a folder and its content. What is removed meanwhile does not count.
fn bytes_in(folder: &Path) -> io::Result<u64> {
    /// The unit of `st_blocks`.
    const BLOCK: u64 = 512;
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            bytes += metadata.blocks() * BLOCK;
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_BOUNDS: DiskBounds =
        DiskBounds { packages_set: u64::MAX, packages_total: u64::MAX, workdir: 0, min_free: 0 };

    fn at(seconds: u64) -> FileTimes {
        FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }

    /// A set with a little more than this many bytes, used at that time.
    fn set(folder: &Path, number: u64, bytes: usize) -> PathBuf {
        let path = folder.join(format!("set{number:03}"));
        fs::create_dir(&path).unwrap();
        if bytes > 0 {
            fs::write(path.join("module.py"), vec![b'x'; bytes]).unwrap();
        }
        fs::File::open(&path).unwrap().set_times(at(number)).unwrap();
        path
    }

    fn look(folder: &Path, bounds: DiskBounds, unfinished: Option<&Path>, in_use: &[&str]) -> Result<(), ToolFailure> {
        let in_use: Vec<String> = in_use.iter().map(|&name| name.to_owned()).collect();
        DiskQuota::new(folder.to_owned(), bounds).look(unfinished, &in_use).unwrap()
    }

    #[test]
    fn least_recently_used_sets_are_deleted_first() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=MOST as u64 + 1 {
            set(folder.path(), number, 0);
        }
        let [left, begun] = [(); 2].map(|()| folder.path().join(unfinished_name(Uuid::new_v4())));
        fs::create_dir(&left).unwrap();
        fs::File::open(&left).unwrap().set_times(at(0)).unwrap();
        fs::create_dir(&begun).unwrap();
        look(folder.path(), NO_BOUNDS, None, &["set000"]).unwrap();
        assert!(!left.exists() && begun.exists());
        let is_there = |number: u64| folder.path().join(format!("set{number:03}")).exists();
        assert!(is_there(0) && !is_there(1) && !is_there(2) && is_there(3));
    }

    #[test]
    fn total_size_is_bounded_and_used_sets_stay() {
        const SET: usize = 1_000_000;
        let folder = tempfile::tempdir().unwrap();
        for number in 0..4 {
            set(folder.path(), number, SET);
        }
        let bounds = DiskBounds { packages_total: 3_500_000, ..NO_BOUNDS };
        look(folder.path(), bounds, None, &["set000"]).unwrap();
        let is_there = |number: u64| folder.path().join(format!("set{number:03}")).exists();
        assert!(is_there(0) && !is_there(1) && is_there(2) && is_there(3));
        // An installation counts too, and replaces unused sets.
        let unfinished = folder.path().join(unfinished_name(Uuid::new_v4()));
        fs::create_dir(&unfinished).unwrap();
        fs::write(unfinished.join("big"), vec![b'x'; 2 * SET]).unwrap();
        look(folder.path(), bounds, Some(&unfinished), &["set000"]).unwrap();
        assert!(is_there(0) && !is_there(2) && !is_there(3));
        let in_use = ["set000", "set009"];
        set(folder.path(), 9, SET);
        let failure = look(folder.path(), bounds, Some(&unfinished), &in_use).unwrap_err();
        assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ResourceExhausted, true));
        assert!(failure.message.contains("--packages-total-mb"), "{failure}");
        assert!(is_there(0) && is_there(9));
    }

    #[test]
    fn oversized_set_or_full_disk_stops_an_installation() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = folder.path().join(unfinished_name(Uuid::new_v4()));
        fs::create_dir(&unfinished).unwrap();
        fs::write(unfinished.join("big"), vec![b'x'; 1_000_000]).unwrap();
        let bounds = DiskBounds { packages_set: 900_000, ..NO_BOUNDS };
        let failure = look(folder.path(), bounds, Some(&unfinished), &[]).unwrap_err();
        assert!(failure.message.contains("--packages-set-mb"), "{failure}");
        set(folder.path(), 1, 100);
        let full = DiskBounds { min_free: u64::MAX, ..NO_BOUNDS };
        let failure = look(folder.path(), full, Some(&unfinished), &["set001"]).unwrap_err();
        assert!(failure.message.contains("--min-free-disk-mb"), "{failure}");
        assert!(folder.path().join("set001").exists());
        // Unused sets are removed before an installation is refused.
        look(folder.path(), full, Some(&unfinished), &[]).unwrap_err();
        assert!(!folder.path().join("set001").exists());
    }

    #[test]
    fn set_size_is_recorded_without_changing_its_last_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = set(folder.path(), 7, 10_000);
        let used = fs::metadata(&path).unwrap().modified().unwrap();
        let bytes = noted(&path, used).unwrap();
        assert!((10_000..100_000).contains(&bytes), "{bytes}");
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), used);
        fs::write(path.join("more"), vec![b'x'; 50_000]).unwrap();
        assert_eq!(noted(&path, used).unwrap(), bytes);
    }
}
