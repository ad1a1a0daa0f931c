use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::unistd::Uid;
use rcrt_postgres::{DataLock, PostgresError};

use crate::{connect, options, start};

#[tokio::test]
async fn a_second_start_on_the_same_folder_names_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let first = start(folder.path()).await;
    first.set_listening("127.0.0.1:8081").unwrap();
    let error = rcrt_postgres::start(options(folder.path()), &|_| {}).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, PostgresError::Held { .. }), "{text}");
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    assert!(text.contains("listening on 127.0.0.1:8081"), "{text}");
    first.stop().await;
    start(folder.path()).await.stop().await;
}

#[test]
fn a_dropped_lock_is_released() {
    let folder = tempfile::tempdir().unwrap();
    let lock = DataLock::acquire(folder.path()).unwrap();
    assert!(matches!(DataLock::acquire(folder.path()), Err(PostgresError::Held { .. })));
    drop(lock);
    DataLock::acquire(folder.path()).unwrap();
}

/// Acquires the lock in a thread, and returns when that thread pauses between two attempts.
fn acquire_in_thread(folder: &Path) -> std::thread::JoinHandle<Result<(), PostgresError>> {
    let (path, (sender, started)) = (folder.to_owned(), std::sync::mpsc::channel());
    let waiting = std::thread::spawn(move || {
        sender.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
        DataLock::acquire(&path).map(drop)
    });
    let stat = Path::new("/proc").join(started.recv().unwrap()).join("stat");
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") S ")) {
        std::thread::yield_now();
    }
    waiting
}

/// A killed process with much memory holds its lock for some time after it became a zombie.
#[test]
fn the_lock_of_an_exiting_process_is_waited_for() {
    if !Path::new("/proc/self/stat").exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock");
    // Never waited for until the end of the test, so it stays a zombie.
    let mut holder = Command::new("true").spawn().unwrap();
    let ended = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ");
    while !ended(holder.id()) {
        std::thread::yield_now();
    }
    std::fs::write(&lock, format!(r#"{{"pid": {}, "command": "true", "since": 0, "listening": null}}"#, holder.id()))
        .unwrap();
    let held = std::fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    let waiting = acquire_in_thread(folder.path());
    held.unlock().unwrap();
    waiting.join().unwrap().unwrap();
    // A process that now has the number, but runs something else, does not hold it.
    let other = r#"{"pid": PID, "command": "rcrt up", "since": 0, "listening": null}"#;
    std::fs::write(&lock, other.replace("PID", &std::process::id().to_string())).unwrap();
    held.lock().unwrap();
    let waiting = acquire_in_thread(folder.path());
    held.unlock().unwrap();
    waiting.join().unwrap().unwrap();
    holder.wait().unwrap();
}

#[test]
fn an_invalid_lock_file_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lock"), "{\"pid\": \"what").unwrap();
    let _lock = DataLock::acquire(folder.path()).unwrap();
}

#[tokio::test]
async fn a_start_takes_over_an_acquired_lock() {
    let folder = tempfile::tempdir().unwrap();
    let lock = DataLock::acquire(folder.path()).unwrap();
    let postgres = rcrt_postgres::start_locked(lock, options(folder.path()), &|_| {}).await.unwrap();
    connect(&postgres).await;
    assert!(matches!(DataLock::acquire(folder.path()), Err(PostgresError::Held { .. })));
    postgres.stop().await;
    DataLock::acquire(folder.path()).unwrap();
}

#[tokio::test]
async fn a_folder_with_other_content_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("postgres");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("holiday.jpg"), "not a database").unwrap();
    let error = rcrt_postgres::start(options(folder.path()), &|_| {}).await.unwrap_err();
    assert!(matches!(error, PostgresError::NotACluster { .. }), "{error}");
    assert!(taken.join("holiday.jpg").exists());
}

#[tokio::test]
async fn root_does_not_change_another_users_folder() {
    if !Uid::effective().is_root() {
        return; // Only root could change it.
    }
    let folder = tempfile::tempdir().unwrap();
    start(folder.path()).await.stop().await;
    change_owner(folder.path(), STRANGER);
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let error = rcrt_postgres::start(options(folder.path()), &|_| {}).await.unwrap_err();
    assert!(matches!(error, PostgresError::ForeignOwner { owner: STRANGER, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("uid {STRANGER}")) && text.contains("run as that user"), "{text}");
    for path in ["", "lock", "run", "postgres", "postgres/PG_VERSION"] {
        assert_eq!(folder.path().join(path).metadata().unwrap().uid(), STRANGER, "{path:?}");
    }
    assert_eq!(folder.path().metadata().unwrap().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn root_does_not_change_another_users_cluster_in_its_own_folder() {
    if !Uid::effective().is_root() {
        return; // Only root could change it.
    }
    for foreign in ["postgres", "run"] {
        let folder = tempfile::tempdir().unwrap();
        start(folder.path()).await.stop().await;
        let foreign = folder.path().join(foreign);
        change_owner(&foreign, STRANGER);
        let error = rcrt_postgres::start(options(folder.path()), &|_| {}).await.unwrap_err();
        assert!(matches!(error, PostgresError::ForeignOwner { owner: STRANGER, .. }), "{error}");
        assert_eq!(foreign.metadata().unwrap().uid(), STRANGER);
    }
}

#[tokio::test]
async fn root_uses_a_folder_of_its_postgres_account() {
    let Ok(Some(nobody)) = nix::unistd::User::from_name("nobody") else { return };
    if !Uid::effective().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    start(folder.path()).await.stop().await;
    for handed_over in ["postgres", "run"] {
        change_owner(&folder.path().join(handed_over), nobody.uid.as_raw());
    }
    let postgres = start(folder.path()).await;
    connect(&postgres).await;
    postgres.stop().await;
}

#[tokio::test]
async fn an_unreadable_cluster_is_an_io_error() {
    let folder = tempfile::tempdir().unwrap();
    // A folder instead of a file: unreadable even for root, who ignores permissions.
    std::fs::create_dir_all(folder.path().join("postgres/PG_VERSION")).unwrap();
    let error = rcrt_postgres::start(options(folder.path()), &|_| {}).await.unwrap_err();
    assert!(matches!(&error, PostgresError::Io { path, .. } if path.ends_with("postgres/PG_VERSION")), "{error}");
}

#[test]
fn a_file_instead_of_the_data_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("afile");
    std::fs::write(&file, "a letter").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let error = DataLock::acquire(&file).unwrap_err();
    assert!(matches!(error, PostgresError::NotAFolder { .. }), "{error}");
    assert!(error.to_string().contains("afile is not a folder"), "{error}");
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o644);
}

#[test]
fn the_lock_file_has_no_arguments_of_its_holder() {
    let folder = tempfile::tempdir().unwrap();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        // The test harness takes the URL for the name of a test.
        .args(["lockholder", "--nocapture", "--skip", "postgres://user:PASSWORD@host/db"])
        .env(LOCK_HOLDER, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("lock is held")));
    let error = DataLock::acquire(folder.path()).unwrap_err();
    let written = std::fs::read_to_string(folder.path().join("lock")).unwrap();
    drop(holder.stdin.take());
    assert!(lines.all(|line| line.is_ok()));
    assert!(holder.wait().unwrap().success());

    let program = std::env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let text = error.to_string();
    assert!(text.contains(&format!("({program} lockholder)")), "{text}");
    assert!(!text.contains("PASSWORD") && !written.contains("PASSWORD"), "{text} {written}");
}

/// Not a test, but the other process of the test above: it holds the lock until its input closes.
#[test]
fn lockholder() {
    let Some(folder) = std::env::var_os(LOCK_HOLDER) else { return };
    let _lock = DataLock::acquire(Path::new(&folder)).unwrap();
    writeln!(std::io::stdout(), "lock is held").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

const LOCK_HOLDER: &str = "RCRT_TEST_LOCK_HOLDER";

/// A uid that is neither this user nor an account that Postgres runs as.
const STRANGER: u32 = 54_321;

fn change_owner(path: &Path, uid: u32) {
    chown(path, Some(uid), Some(uid)).unwrap();
    if path.is_dir() {
        for entry in path.read_dir().unwrap() {
            change_owner(&entry.unwrap().path(), uid);
        }
    }
}
