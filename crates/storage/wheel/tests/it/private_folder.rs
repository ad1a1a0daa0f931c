//! A cache that another user could change is refused, because its content is executed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use nix::unistd::Uid;
use rcrt_wheel::make_private;

use crate::SMALL;

const OTHER_USER: u32 = 12_345;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Creates a cache that already has the wheel's folder.
fn filled(cache: &Path) {
    fs::create_dir_all(SMALL.home(cache)).unwrap();
}

async fn refused(cache: &Path) -> String {
    let error = SMALL.install(cache, &|_| {}, |_| Ok(())).await.unwrap_err();
    assert!(error.contains("RCRT_CACHE") && error.contains(&cache.display().to_string()), "{error}");
    error
}

#[tokio::test]
async fn a_cache_that_others_can_write_to_is_refused() {
    let outer = tempfile::tempdir().unwrap();
    let cache = outer.path().join("cache");
    filled(&cache);
    assert_eq!(SMALL.install(&cache, &|_| {}, |_| Ok(())).await, Ok(SMALL.home(&cache)));
    for (folder, bad) in
        [(&cache, 0o777), (&cache, 0o702), (&cache.join("small"), 0o777), (&cache.join("small"), 0o1777)]
    {
        let before = mode(folder);
        set_mode(folder, bad);
        let error = refused(&cache).await;
        assert!(error.contains("other users can write to") && error.contains("chmod go-w"), "{error}");
        set_mode(folder, before);
    }
    // Parent folders too: a user who can write there can replace the cache.
    set_mode(outer.path(), 0o777);
    refused(&cache).await;
    // In a sticky folder they cannot.
    set_mode(outer.path(), 0o1777);
    assert!(SMALL.install(&cache, &|_| {}, |_| Ok(())).await.is_ok());
}

#[tokio::test]
async fn a_cache_of_another_user_is_refused() {
    if !Uid::effective().is_root() {
        // Only root can change the owner of a folder.
        return;
    }
    let outer = tempfile::tempdir().unwrap();
    set_mode(outer.path(), 0o1777);
    let cache = outer.path().join("cache");
    filled(&cache);
    for folder in [cache.clone(), cache.join("small")] {
        chown(&folder, Some(OTHER_USER), None).unwrap();
        let error = refused(&cache).await;
        assert!(error.contains("belongs to user 12345"), "{error}");
        chown(&folder, Some(0), None).unwrap();
    }
    let home = SMALL.home(&cache);
    chown(&home, Some(OTHER_USER), None).unwrap();
    let error = SMALL.install(&cache, &|_| {}, |_| Ok(())).await.unwrap_err();
    assert!(error.contains("belongs to user 12345"), "{error}");
    chown(&home, Some(0), None).unwrap();
    // Another user's link to our folder: they could change its target.
    let link = outer.path().join("link");
    symlink(&cache, &link).unwrap();
    assert!(make_private(&link.join("small")).is_ok());
    lchown(&link, Some(OTHER_USER), None).unwrap();
    refused(&link).await;
}

#[test]
fn a_new_folder_is_private() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("a/b");
    assert_eq!(make_private(&folder).as_ref(), Ok(&folder));
    assert_eq!((mode(&outer.path().join("a")), mode(&folder)), (0o700, 0o700));
    fs::write(outer.path().join("file"), "").unwrap();
    let error = make_private(&outer.path().join("file/x")).unwrap_err();
    assert!(error.contains("file is not a folder"), "{error}");
    let (one, other) = (outer.path().join("one"), outer.path().join("other"));
    symlink(&one, &other).unwrap();
    symlink(&other, &one).unwrap();
    assert!(make_private(&one).unwrap_err().contains("too many symbolic links"));
}
