//! `pg_dump` and `pg_restore` as child processes.

use std::process::Stdio;

use tokio::process::{Child, Command};
use url::Url;

use crate::{BackupError, Database};

/// Characters of a program's output in an error.
const LONGEST_OUTPUT: usize = 2000;

impl Database {
    /// A command that connects to this database. The password is passed in the environment, because
    /// all users of the machine can read arguments.
    pub(crate) fn command(&self, program: &str) -> Result<Command, BackupError> {
        let mut url = Url::parse(&self.url).map_err(|_| BackupError::Url)?;
        let mut command = Command::new(self.programs.join(program));
        command.env_remove("PGOPTIONS").stderr(Stdio::piped()).kill_on_drop(true);
        if let Some(password) = url.password().map(str::to_owned) {
            url.set_password(None).map_err(|()| BackupError::Url)?;
            command.env("PGPASSWORD", decoded(&password));
        }
        command.arg("--no-password").arg("--dbname").arg(url.as_str());
        Ok(command)
    }
}

/// Starts a program. The error names it.
pub(crate) fn spawn(mut command: Command) -> Result<Child, BackupError> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|source| BackupError::Run { program, source })
}

/// An error with the end of a program's output, which has the reason.
pub(crate) fn failure(program: &'static str, stderr: &[u8]) -> BackupError {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    let from = text.char_indices().rev().nth(LONGEST_OUTPUT).map_or(0, |(at, _)| at);
    BackupError::Failed { program, output: text[from..].to_owned() }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let hex = others.get(..2).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match hex.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_not_in_the_arguments() {
        let database = Database { url: "postgres://me:p%40ss@db:5432/rcrt".into(), programs: "/bin".into() };
        let command = database.command("pg_dump").unwrap_or_else(|error| panic!("{error}"));
        let command = command.as_std();
        assert!(command.get_args().all(|argument| !argument.to_string_lossy().contains("ss@")));
        let password = command.get_envs().find(|(name, _)| *name == "PGPASSWORD").and_then(|(_, value)| value);
        assert_eq!(password.map(|value| value.to_string_lossy().into_owned()).as_deref(), Some("p@ss"));
    }
}
