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

/// Makes `folder` for this user alone where it is not there. The error is a phrase that names the folder, or the one above
/// it, that somebody else could change or put in its place.
pub fn make_private(folder: &Path) -> Result<PathBuf, String> {
    let folder = std::path::absolute(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if !is_there(&folder)? {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        // Somebody may have been faster.
        if !is_there(&folder)? {
            return Err(format!("{} is gone again", folder.display()));
        }
    }
    Ok(folder)
}

/// Whether the folder is there. Looks at each step of the way to it, and to where links on it lead.
fn is_there(folder: &Path) -> Result<bool, String> {
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
                return Err(format!("{}: its links lead in circles", folder.display()));
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
            return Err(format!("{} is no folder", next.display()));
        }
        // In a folder such as /tmp others can make files and folders, but not put theirs in the place of ours.
        let is_shared_well = !rest.is_empty() && metadata.mode() & STICKY != 0;
        if !is_shared_well && others_can_write(&metadata) {
            return Err(format!(
                "other users can write to {} (mode {:o}); take that away from them with chmod go-w",
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
    Err(format!("{} belongs to user {}, and this program runs as user {own}", path.display(), metadata.uid()))
}

fn others_can_write(metadata: &Metadata) -> bool {
    let mode = metadata.mode();
    mode & 0o002 != 0 || mode & 0o020 != 0 && !has_nobody_else(metadata.gid())
}

/// Whether the group is the superuser's, or this user's own by the custom of a group for each user.
fn has_nobody_else(group: u32) -> bool {
    if group == 0 {
        return true;
    }
    let (Ok(Some(group)), Ok(Some(user))) = (Group::from_gid(Gid::from_raw(group)), User::from_uid(Uid::effective()))
    else {
        return false;
    };
    group.name == user.name && group.mem.iter().all(|member| *member == user.name)
}
