//! The failure that an agent gets when a file is unavailable.

use std::io;

use breadcrumb::{ErrorCode, ToolFailure};
use rustix::io::Errno;

pub fn failed(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
}

pub fn outside(path: &str) -> ToolFailure {
    let message = format!("{} is outside of the working folder, which is all that can be reached", shown(path));
    ToolFailure::new(ErrorCode::PermissionDenied, message)
}

/// A path that leads out is told by cap-std without a number of the system.
pub fn is_way_out(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// `what` is what was tried: `cannot be read`.
pub fn of_io(path: &str, what: &str, error: &io::Error) -> ToolFailure {
    let path_shown = shown(path);
    if is_way_out(error) {
        return outside(path);
    }
    match Errno::from_io_error(error) {
        Some(Errno::NAMETOOLONG) => ToolFailure::new(
            ErrorCode::InvalidArguments,
            format!("path: {path_shown} is too long, or a part of it is: a name ends at 255 bytes"),
        ),
        Some(Errno::NOTDIR | Errno::EXIST) => {
            failed(format!("{path_shown} {what}: a part of the path is a file, not a folder"))
        }
        Some(Errno::LOOP) => failed(format!("{path_shown} {what}: its links lead in circles")),
        Some(Errno::NOSPC | Errno::DQUOT) => {
            ToolFailure::new(ErrorCode::ResourceExhausted, format!("{path_shown} {what}: the disk is full"))
        }
        Some(Errno::ROFS) => failed(format!("{path_shown} {what}: the working folder is read-only")),
        Some(Errno::ACCESS | Errno::PERM) => {
            ToolFailure::new(ErrorCode::PermissionDenied, format!("{path_shown} {what}: its rights do not let us"))
        }
        _ => failed(format!("{path_shown} {what}: {error}")),
    }
}

/// A path as it may stand in a message: cut, and without what would move a cursor.
pub fn shown(path: &str) -> String {
    let clean: String = path.chars().filter(|c| !c.is_control()).take(300).collect();
    if clean.is_empty() { "\"\"".to_owned() } else { clean }
}
