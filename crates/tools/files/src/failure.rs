//! Failures, as callers see them.

use std::io;

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
pub use rcrt_executors::builtin::failed;
use rustix::io::Errno;

pub fn invalid(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::InvalidArguments, message)
}

pub fn outside(path: &str) -> ToolFailure {
    let message = format!("{} is outside of the working folder; only files in it can be accessed", shown(path));
    ToolFailure::new(ErrorCode::PermissionDenied, message)
}

/// cap-std reports a path that leads out of the folder without an OS error code.
pub fn is_outside_folder(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// `what` is the failed operation, such as `cannot be read`.
pub fn of_io(path: &str, what: &str, error: &io::Error) -> ToolFailure {
    let path_shown = shown(path);
    if is_outside_folder(error) {
        return outside(path);
    }
    match Errno::from_io_error(error) {
        Some(Errno::NAMETOOLONG) => ToolFailure::new(
            ErrorCode::InvalidArguments,
            format!("path: {path_shown} is too long; a name can have at most 255 bytes"),
        ),
        Some(Errno::NOTDIR | Errno::EXIST) => {
            failed(format!("{path_shown} {what}: a part of the path is a file, not a folder"))
        }
        Some(Errno::LOOP) => failed(format!("{path_shown} {what}: its links form a cycle")),
        Some(Errno::NOSPC | Errno::DQUOT) => {
            ToolFailure::new(ErrorCode::ResourceExhausted, format!("{path_shown} {what}: the disk is full"))
        }
        Some(Errno::ROFS) => failed(format!("{path_shown} {what}: the working folder is read-only")),
        Some(Errno::ACCESS | Errno::PERM) => {
            ToolFailure::new(ErrorCode::PermissionDenied, format!("{path_shown} {what}: permission denied"))
        }
        _ => failed(format!("{path_shown} {what}: {error}")),
    }
}

/// A path for a message: shortened, and without control characters.
pub fn shown(path: &str) -> String {
    let clean: String = path.chars().filter(|c| !c.is_control()).take(300).collect();
    if clean.is_empty() { "\"\"".to_owned() } else { clean }
}
