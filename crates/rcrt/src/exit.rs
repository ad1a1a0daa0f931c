//! What the exit status means, and how an error finds its own.

use std::process::ExitCode;

use breadcrumb::StoreError;

/// The statuses, as `--help` shows them.
pub const HELP: &str = "\
Exit status:
  0  done
  1  it failed
  2  the command line is wrong
  3  there is no such record, tool or secret
  4  the tool answered with an error
  5  the server cannot be reached
  6  the server refuses: no token, an expired one, or one whose roles do not suffice
  130  stopped by Ctrl-C";

/// A failure with a status of its own; anything else is 1.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NotFound(String),
    /// Its message was shown already, in the tool's own words.
    #[error("the tool answered with an error")]
    ToolError,
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Refused(String),
    #[error("stopped")]
    Interrupted,
    /// Whatever there was to say stands on the screen.
    #[error("failed")]
    Shown,
}

impl Failure {
    fn status(&self) -> u8 {
        match self {
            Self::Shown => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::ToolError => 4,
            Self::Unreachable(_) => 5,
            Self::Refused(_) => 6,
            Self::Interrupted => 130,
        }
    }

    fn is_shown(&self) -> bool {
        matches!(self, Self::ToolError | Self::Shown)
    }
}

fn status_of(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.status();
        }
        match cause.downcast_ref::<StoreError>() {
            Some(StoreError::NotFound { .. }) => return 3,
            Some(StoreError::Unavailable(_)) => return 5,
            Some(StoreError::Unauthorized(_) | StoreError::Forbidden(_)) => return 6,
            _ => {}
        }
    }
    1
}

/// Tells the error on stderr, once, and gives its status.
#[allow(clippy::print_stderr)]
pub fn report(error: &anyhow::Error) -> ExitCode {
    let shown = error.chain().any(|cause| cause.downcast_ref::<Failure>().is_some_and(Failure::is_shown));
    if !shown {
        eprintln!("rcrt: {}", sentence(error));
    }
    ExitCode::from(status_of(error))
}

/// The chain of causes in one line; several violations get a line each.
fn sentence(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = match cause.downcast_ref::<StoreError>() {
            Some(StoreError::Invalid(violations)) if violations.0.len() > 1 => {
                violations.0.iter().fold("the input is refused:".to_owned(), |text, one| format!("{text}\n  {one}"))
            }
            _ => cause.to_string(),
        };
        // Wrappers often repeat their source's words.
        if !parts.last().is_some_and(|last| last.contains(&text)) {
            parts.push(text);
        }
    }
    parts.join(": ")
}
