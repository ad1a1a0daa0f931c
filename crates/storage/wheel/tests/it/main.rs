//! Installs a small wheel from the index with this machine's pip.
#![allow(clippy::unwrap_used)]

mod private_folder;

use std::sync::Mutex;

use rcrt_wheel::Wheel;

const SMALL: Wheel = Wheel {
    package: "iniconfig",
    version: "2.0.0",
    sha256: "b6a85871a79d2e3b22d2d1b94ac2824226a63c6b741c88f7ae975f18b6778374",
    room: "small",
    what: "a small wheel (6 kB)",
};

#[tokio::test]
async fn concurrent_installations_download_once() {
    let cache = tempfile::tempdir().unwrap();
    let steps = Mutex::new(Vec::new());
    let progress = |step: &str| steps.lock().unwrap().push(step.to_owned());
    let install = || SMALL.install(cache.path(), &progress, |_| Ok(()));
    let (one, other) = tokio::join!(install(), install());
    assert_eq!(one, other);
    let home = one.unwrap();
    assert_eq!(home, SMALL.home(cache.path()));
    assert!(home.join("iniconfig/__init__.py").is_file());
    assert_eq!(install().await.unwrap(), home);
    let expected = ["Downloading a small wheel (6 kB) (only once)", "Unpacking a small wheel (6 kB)"];
    assert_eq!(*steps.lock().unwrap(), expected);
    assert!(!cache.path().join("small/draft").exists());
}

#[tokio::test]
async fn a_wheel_with_another_digest_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let other = Wheel { sha256: "0000000000000000000000000000000000000000000000000000000000000000", ..SMALL };
    let error = other.install(cache.path(), &|_| {}, |_| Ok(())).await.unwrap_err();
    assert!(error.contains("SHA-256") && error.contains(SMALL.sha256), "{error}");
    assert!(!other.home(cache.path()).exists());
}

#[tokio::test]
async fn leftovers_of_an_interrupted_installation_are_removed() {
    let cache = tempfile::tempdir().unwrap();
    for left in ["small/draft/wheels", "small/draft/tree/iniconfig"] {
        std::fs::create_dir_all(cache.path().join(left)).unwrap();
    }
    std::fs::write(cache.path().join("small/draft/wheels/half.whl"), "PK").unwrap();
    let failed = SMALL.install(cache.path(), &|_| {}, |_| Err("no room".to_owned())).await;
    assert_eq!(failed.unwrap_err(), "no room");
    let home = SMALL.install(cache.path(), &|_| {}, |_| Ok(())).await.unwrap();
    assert!(home.join("iniconfig/__init__.py").is_file());
}

#[tokio::test]
async fn a_missing_package_is_reported() {
    let cache = tempfile::tempdir().unwrap();
    let missing = Wheel { version: "0.0.0.dev999", ..SMALL };
    let error = missing.install(cache.path(), &|_| {}, |_| Ok(())).await.unwrap_err();
    assert!(error.contains("pip"), "{error}");
}
