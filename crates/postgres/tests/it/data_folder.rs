use postgres::{DataLock, PostgresError};

use crate::{connect, options, start};

#[tokio::test]
async fn a_second_start_on_the_same_folder_names_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let first = start(folder.path()).await;
    first.set_listening("127.0.0.1:8081").unwrap();
    let error = postgres::start(options(folder.path()), &|_| {}).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, PostgresError::Held { .. }), "{text}");
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    assert!(text.contains("listening on 127.0.0.1:8081"), "{text}");
    first.stop().await;
    start(folder.path()).await.stop().await;
}

#[test]
fn the_lock_is_free_again_when_its_holder_lets_go() {
    let folder = tempfile::tempdir().unwrap();
    let lock = DataLock::acquire(folder.path()).unwrap();
    assert!(matches!(DataLock::acquire(folder.path()), Err(PostgresError::Held { .. })));
    drop(lock);
    DataLock::acquire(folder.path()).unwrap();
}

#[test]
fn a_lock_file_with_nonsense_in_it_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lock"), "{\"pid\": \"what").unwrap();
    let _lock = DataLock::acquire(folder.path()).unwrap();
}

#[tokio::test]
async fn a_lock_taken_earlier_serves_for_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let lock = DataLock::acquire(folder.path()).unwrap();
    let postgres = postgres::start_locked(lock, options(folder.path()), &|_| {}).await.unwrap();
    connect(&postgres).await;
    assert!(matches!(DataLock::acquire(folder.path()), Err(PostgresError::Held { .. })));
    postgres.stop().await;
    DataLock::acquire(folder.path()).unwrap();
}

#[tokio::test]
async fn a_folder_that_holds_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("postgres");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("holiday.jpg"), "not a database").unwrap();
    let error = postgres::start(options(folder.path()), &|_| {}).await.unwrap_err();
    assert!(matches!(error, PostgresError::NotACluster { .. }), "{error}");
    assert!(taken.join("holiday.jpg").exists());
}
