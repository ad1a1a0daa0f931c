//! Reads arguments that are JSON text, `-` for stdin or `@file`, and secret values, which are never
//! on the command line.

use std::io::{IsTerminal, Read};

use anyhow::Context;
use rcrt_breadcrumb::check_numbers;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::Value;

use crate::exit::{Failure, fail};

/// Reads `argument` as JSON: the text itself, `-` for stdin, `@path` for a file. `what` names it in
/// errors.
pub fn json(argument: &str, what: &str) -> anyhow::Result<Value> {
    let text = if argument == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("stdin cannot be read as text")?;
        text
    } else if let Some(path) = argument.strip_prefix('@') {
        std::fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("{what}: {path} cannot be read: {error}")))?
    } else {
        argument.to_owned()
    };
    let value = serde_json::from_str(&text).map_err(|error| {
        Failure::Usage(format!("{what} is not valid JSON: {error}; expected JSON, `-` for stdin or `@file`"))
    })?;
    check_numbers(text.as_bytes()).map_err(|found| {
        let location = if found.field.is_empty() { what.to_owned() } else { format!("{what}: {}", found.field) };
        Failure::Usage(format!("{location} {}", found.message))
    })?;
    Ok(value)
}

/// Reads a secret from stdin: on a terminal with a prompt and without echo, else all input without
/// its last line break.
pub fn secret(prompt: &str) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    let mut text = String::new();
    if stdin.is_terminal() {
        let _quiet = NoEcho::start(prompt)?;
        stdin.read_line(&mut text)?;
    } else {
        stdin.lock().read_to_string(&mut text).context("stdin cannot be read as text")?;
    }
    let value = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if value.is_empty() {
        fail!(Usage, "the value is empty; type it, or pipe it to stdin");
    }
    Ok(value.to_owned())
}

/// Turns off the terminal's echo until it is dropped.
struct NoEcho {
    before: Termios,
}

impl NoEcho {
    fn start(prompt: &str) -> anyhow::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &quiet)?;
        eprint!("{prompt}: ");
        Ok(Self { before })
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        if let Err(error) = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before) {
            tracing::warn!(%error, "the terminal's echo could not be turned on again; type `stty echo`");
        }
        eprintln!();
    }
}
