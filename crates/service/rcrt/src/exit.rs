//! The exit statuses, and how errors map to them.

use std::process::ExitCode;

use rcrt_breadcrumb::StoreError;
use serde_json::json;

use crate::config::Format;
use crate::progress;

/// The statuses, as `--help` shows them.
pub const HELP: &str = "\
Exit status:
  0  success
  1  failure
  2  the command line is wrong
  3  no such record, call, tool, agent, secret or tenant
  4  the tool returned an error
  5  the server cannot be reached, or refuses for now: it is stopping, or a limit is reached
  6  the server refuses: no token, an expired or revoked token, or missing roles
  130  stopped by Ctrl-C (server, runner and a started up exit with 0)
With --output json an error is one line on stderr: {\"error\": text, \"code\": name, \"exit\": status}.";

/// A failure with its own exit status. All other errors exit with 1.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NotFound(String),
    /// The tool's error. Its message is already printed.
    #[error("{0}")]
    ToolError(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Refused(String),
    #[error("stopped")]
    Interrupted,
    /// The problem is already printed.
    #[error("the errors are in the output")]
    Shown,
}

/// Ends the function with this kind of failure. The rest is the text, as for `format!`.
macro_rules! fail {
    ($kind:ident, $($text:tt)+) => {
        return Err($crate::exit::Failure::$kind(format!($($text)+)).into())
    };
}
pub(crate) use fail;

impl Failure {
    fn status(&self) -> u8 {
        match self {
            Self::Shown => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::ToolError(_) => 4,
            Self::Unreachable(_) => 5,
            Self::Refused(_) => 6,
            Self::Interrupted => 130,
        }
    }

    /// Whether the output has the problem already.
    pub fn is_shown(&self) -> bool {
        matches!(self, Self::ToolError(_) | Self::Shown)
    }
}

fn status_of(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.status();
        }
        match cause.downcast_ref::<StoreError>() {
            Some(StoreError::NotFound { .. }) => return 3,
            Some(StoreError::QueueFull { .. } | StoreError::Busy(_) | StoreError::Unavailable(_)) => return 5,
            Some(StoreError::Unauthorized(_) | StoreError::Forbidden(_)) => return 6,
            _ => {}
        }
    }
    1
}

/// The name of a status in JSON output.
fn code(status: u8) -> &'static str {
    match status {
        2 => "usage",
        3 => "not_found",
        4 => "tool_error",
        5 => "unreachable",
        6 => "refused",
        130 => "interrupted",
        _ => "failed",
    }
}

/// Prints an error as one line of JSON on stderr.
fn report_json(text: &str, status: u8) -> ExitCode {
    eprintln!("{}", json!({"error": text, "code": code(status), "exit": status}));
    ExitCode::from(status)
}

/// Reports a wrong command line, or prints the requested help.
pub fn report_usage(error: &clap::Error) -> ExitCode {
    // The command line could not be parsed, so look for the output format directly.
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let asked = words.windows(2).any(|pair| matches!(&*pair[0], "-o" | "--output") && pair[1] == "json")
        || words.iter().any(|word| matches!(&**word, "--output=json" | "-o=json" | "-ojson"))
        || std::env::var_os("RCRT_OUTPUT").is_some_and(|value| value == "json");
    if !error.use_stderr() || !asked {
        error.exit();
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    report_json(text.split("\n\n").next().unwrap_or_default().trim(), 2)
}

/// Prints the error on stderr once, and returns its status.
pub fn report(error: &anyhow::Error, format: Format) -> ExitCode {
    if format == Format::Json {
        return report_json(&sentence(error), status_of(error));
    }
    let shown = error.chain().any(|cause| cause.downcast_ref::<Failure>().is_some_and(Failure::is_shown));
    if !shown {
        progress::fail(&sentence(error));
    }
    ExitCode::from(status_of(error))
}

/// The chain of causes as one line. Several violations get one line each.
fn sentence(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        // Postgres' own text: that of sqlx ends with a line of the source code of Postgres.
        if let Some(sqlx::Error::Database(error)) = cause.downcast_ref::<sqlx::Error>() {
            parts.push(error.message().to_owned());
            break;
        }
        let text = match cause.downcast_ref::<StoreError>() {
            Some(StoreError::Invalid(violations)) if violations.0.len() > 1 => {
                violations.0.iter().fold("the input is not valid:".to_owned(), |text, one| format!("{text}\n  {one}"))
            }
            _ => cause.to_string(),
        };
        // Wrapping errors often repeat the text of their source.
        if !parts.last().is_some_and(|last| last.contains(&text)) {
            parts.push(text);
        }
    }
    parts.join(": ")
}
