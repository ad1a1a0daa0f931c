//! Folders whose content is executed or trusted: only this user and the superuser can change them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use nix::unistd::{Gid, Group, Uid, User};

const MOST_LINKS: usize = 40;
const STICKY: u32 = 0o1000;

/// Creates `folder` with mode 0700 if it does not exist. The error is a message that names the
/// folder, or the parent folder, that another user could change or replace.
pub fn make_private(folder: &Path) -> Result<PathBuf, String> {
    let folder = std::path::absolute(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if !private_folder_exists(&folder)? {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        // Another process may have created or removed it meanwhile.
        if !private_folder_exists(&folder)? {
            return Err(format!("{} was removed right after it was created", folder.display()));
        }
    }
    Ok(folder)
}

/// Returns whether the folder exists. Checks each component of its path, and the targets of links.
fn private_folder_exists(folder: &Path) -> Result<bool, String> {
    let mut here = PathBuf::from("/");
    let mut rest = names(folder);
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        let next = match name.to_str() {
            Some("..") => {
                here.pop();
                continue;
            }
            _ => here.join(&name),
        };
        let metadata = match fs::symlink_metadata(&next) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(format!("{}: {error}", next.display())),
        };
        check_owner(&next, &metadata)?;
        if metadata.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(format!("{}: too many symbolic links (circular?)", folder.display()));
            }
            let target = fs::read_link(&next).map_err(|error| format!("{}: {error}", next.display()))?;
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            let mut steps = names(&target);
            steps.append(&mut rest);
            rest = steps;
            continue;
        }
        if !metadata.is_dir() {
            return Err(format!("{} is not a folder", next.display()));
        }
        // In a sticky folder such as /tmp, other users can create entries but cannot replace ours.
        let is_sticky_parent = !rest.is_empty() && metadata.mode() & STICKY != 0;
        if !is_sticky_parent && others_can_write(&metadata) {
            return Err(format!(
                "other users can write to {} (mode {:o}); remove that permission with chmod go-w",
                next.display(),
                metadata.mode() & 0o7777
            ));
        }
        here = next;
    }
    Ok(true)
}

fn names(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    names.collect()
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), String> {
    let own = Uid::effective().as_raw();
    if metadata.uid() == own || metadata.uid() == 0 {
        return Ok(());
    }
    Err(format!("{} belongs to user {}, but this program runs as user {own}", path.display(), metadata.uid()))
}

fn others_can_write(metadata: &Metadata) -> bool {
    let mode = metadata.mode();
    mode & 0o002 != 0 || mode & 0o020 != 0 && !is_private_group(metadata.gid())
}

/// Returns whether the group is root's, or this user's private group (same name, no other members).
fn is_private_group(group: u32) -> bool {
    if group == 0 {
        return true;
    }
    let (Ok(Some(group)), Ok(Some(user))) = (Group::from_gid(Gid::from_raw(group)), User::from_uid(Uid::effective()))
    else {
        return false;
    };
    group.name == user.name && group.mem.iter().all(|member| *member == user.name)
}
