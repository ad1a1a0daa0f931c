//! The folder in which native tools read, write and run programs. It must not contain the
//! installation's own files, because tools could read keys and tokens.

use std::path::{Component, Path, PathBuf};

use crate::exit::{Failure, fail};

/// The default working folder, below the data folder.
const DEFAULT: &str = "work";

/// Returns the absolute path of the folder. `data` is the absolute path of the data folder, `given`
/// the value of `--workdir`.
pub fn working_folder(given: Option<&Path>, data: &Path) -> anyhow::Result<PathBuf> {
    let own = data.join(DEFAULT);
    let Some(given) = given else { return Ok(own) };
    let folder = std::path::absolute(given)?;
    check_folder(&folder)?;
    let (real, real_data) = (resolved(&folder)?, resolved(data)?);
    if real_data.starts_with(&real) {
        fail!(
            Usage,
            "--workdir: {} contains the data folder {}, whose keys and tokens tools must not read; name a folder outside of it",
            folder.display(),
            data.display()
        );
    }
    if real.starts_with(&real_data) && !real.starts_with(real_data.join(DEFAULT)) {
        fail!(
            Usage,
            "--workdir: {} is inside the data folder {}, which tools must not reach; name a folder outside of it, or {}",
            folder.display(),
            data.display(),
            own.display()
        );
    }
    Ok(folder)
}

/// Refuses a path that is not a folder, and one below a file.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    let Some(there) = folder.ancestors().find(|path| path.symlink_metadata().is_ok()) else { return Ok(()) };
    if there.is_dir() {
        return Ok(());
    }
    let message = if there == folder {
        format!("--workdir: {} is not a folder; name a folder", folder.display())
    } else {
        format!(
            "--workdir: {} cannot be created, because {} is not a folder; name another folder",
            folder.display(),
            there.display()
        )
    };
    Err(Failure::Usage(message).into())
}

/// Resolves links, also for a path whose last components do not exist.
fn resolved(path: &Path) -> anyhow::Result<PathBuf> {
    for there in path.ancestors() {
        let Ok(real) = there.canonicalize() else { continue };
        let rest = path.strip_prefix(there)?;
        if rest.components().any(|part| part == Component::ParentDir) {
            fail!(Usage, "{}: `..` cannot follow a folder that does not exist", path.display());
        }
        return Ok(real.join(rest));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::working_folder;

    #[test]
    fn the_data_folder_cannot_be_the_working_folder_even_through_links() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        std::fs::create_dir_all(data.join("work/deep")).unwrap();
        std::fs::create_dir_all(root.path().join("data-beside")).unwrap();
        std::os::unix::fs::symlink(&data, root.path().join("link")).unwrap();
        std::os::unix::fs::symlink(root.path(), root.path().join("data-beside/up")).unwrap();
        let chosen = |path: &str| working_folder(Some(&root.path().join(path)), &data);
        for bad in [
            "",
            ".",
            "data",
            "data/",
            "data/keys",
            "link",
            "link/keys",
            "data-beside/up",
            "data/work/..",
            "none/../data",
        ] {
            let error = chosen(bad).unwrap_err().to_string();
            assert!(error.contains("data"), "{bad}: {error}");
        }
        assert!(working_folder(Some("/".as_ref()), &data).is_err());
        for good in ["data-beside", "elsewhere/that/is/not/there", "data/work", "data/work/deep", "link/work"] {
            assert_eq!(chosen(good).unwrap(), root.path().join(good), "{good}");
        }
        assert_eq!(working_folder(None, &data).unwrap(), data.join("work"));
    }

    #[test]
    fn a_file_is_not_a_working_folder() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(root.path().join("nowhere"), root.path().join("dangling")).unwrap();
        for bad in ["file", "file/below", "dangling"] {
            let path = root.path().join(bad);
            let error = working_folder(Some(&path), &root.path().join("data")).unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()) && error.contains("is not a folder"), "{error}");
        }
    }
}
