//! This machine's Python 3. It is asked once, outside of the jail, for its path and its parts, and
//! then tried inside.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rcrt_jail::command::{CommandLimits, CommandSpec, ExitReason, FilesystemView, Jail};
use serde::Deserialize;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::pip_settings::PipSettings;

/// The version for which scripts are written.
pub const EXPECTED: (u32, u32) = (3, 12);
/// Tried in this order: the expected version first. Each name is searched in
/// the operator's path, then in the usual folders.
const PROGRAMS: [&str; 6] = [
    "python3.12",
    "/usr/bin/python3.12",
    "/usr/local/bin/python3.12",
    "python3",
    "/usr/bin/python3",
    "/usr/local/bin/python3",
];
/// Prints the interpreter's paths and version.
const QUESTION: &str = "import sys,os,json;print(json.dumps({'program':os.path.realpath(sys.executable),\
    'prefixes':[sys.base_prefix,sys.base_exec_prefix],'libraries':[os.path.dirname(os.__file__)],\
    'version':sys.version,'major':sys.version_info[0],'minor':sys.version_info[1]}))";
/// The oldest supported version: 3.8.
const OLDEST: (u32, u32) = (3, 8);
const PATIENCE: Duration = Duration::from_secs(20);

/// A Python that runs in the jail.
#[derive(Debug, Clone)]
pub struct Interpreter {
    /// The path, in the jail and on this machine.
    pub program: PathBuf,
    parts: Vec<PathBuf>,
    /// `3.12.4`.
    pub version: String,
    /// Identifies the interpreter, because environments belong to one interpreter.
    pub identity: String,
    /// The name by which it was found. Its pip may depend on it.
    asked_as: &'static str,
    pip_settings: Arc<OnceCell<PipSettings>>,
}

#[derive(Deserialize)]
struct PythonInfo {
    program: PathBuf,
    prefixes: Vec<PathBuf>,
    libraries: Vec<PathBuf>,
    version: String,
    major: u32,
    minor: u32,
}

impl Interpreter {
    /// Returns the first interpreter that runs in the jail. The error says what to do.
    pub async fn find(jail: &Jail) -> Result<Self, String> {
        let mut reasons = Vec::new();
        for program in PROGRAMS {
            match Self::ask(program).await {
                Ok(found) => match found.works_in(jail).await {
                    Ok(()) => return Ok(found),
                    Err(reason) => reasons.push(format!("{program} does not run in the jail: {reason}")),
                },
                Err(reason) => reasons.push(format!("{program}: {reason}")),
            }
        }
        Err(format!("no working Python 3 was found; install one ({})", reasons.join("; ")))
    }

    async fn ask(program: &'static str) -> Result<Self, String> {
        // Not in the folder where this program was started: it may contain modules.
        let asked = Command::new(program)
            .args(["-I", "-c", QUESTION])
            .current_dir("/")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        let answered = tokio::time::timeout(PATIENCE, asked).await.map_err(|_| "it does not respond".to_owned())?;
        let output = answered.map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("it ended with {}", output.status));
        }
        let answer: PythonInfo = serde_json::from_slice(&output.stdout).map_err(|_| "it is not Python 3".to_owned())?;
        if (answer.major, answer.minor) < OLDEST {
            return Err(format!("it is older than {}.{}", OLDEST.0, OLDEST.1));
        }
        let version = answer.version.split_whitespace().next().unwrap_or_default().to_owned();
        let identity = format!("{} {}", answer.program.display(), answer.version);
        // It may be installed directly in a user's home, which also contains other files.
        let prefixes = answer.prefixes.into_iter().filter(|prefix| !is_a_home(prefix));
        let parts = prefixes.chain(answer.libraries).collect();
        let pip_settings = Arc::default();
        Ok(Self { program: answer.program, parts, version, identity, asked_as: program, pip_settings })
    }

    /// The pip configuration of this machine. Read by the first installation, because it takes pip
    /// half a second of processor time. The error says why it cannot be read.
    pub async fn pip_settings(&self) -> Result<&PipSettings, String> {
        self.pip_settings.get_or_try_init(|| PipSettings::ask(Path::new(self.asked_as))).await
    }

    /// Removes the passwords of the settings that were read from a text.
    pub fn cleared(&self, text: String) -> String {
        match self.pip_settings.get() {
            Some(settings) => settings.cleared(text),
            None => text,
        }
    }

    /// Makes its parts visible in the jail.
    pub fn show(&self, view: &mut FilesystemView) {
        for part in &self.parts {
            view.show_unless_shown(part);
        }
        view.show_unless_shown(&self.program);
    }

    async fn works_in(&self, jail: &Jail) -> Result<(), String> {
        let mut view = FilesystemView::of_programs(false);
        self.show(&mut view);
        let order = CommandSpec {
            program: self.program.clone(),
            arguments: ["-I", "-c", "import json, venv"].map(str::to_owned).into(),
            environment: [].into(),
            folder: "/".into(),
            view,
            network: false,
            bounds: CommandLimits { time: PATIENCE, ..CommandLimits::default() },
        };
        let finished = jail.run(&order).await.map_err(|error| error.to_string())?;
        match finished.how {
            ExitReason::Exited(0) => Ok(()),
            how => Err(format!("{how:?}: {}", finished.stderr.text().trim())),
        }
    }
}

/// Whether a folder is a home or contains homes.
fn is_a_home(folder: &Path) -> bool {
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let is_above = |home: &Path| home.starts_with(folder);
    own.as_deref().is_some_and(is_above)
        || is_above(Path::new("/root"))
        || folder.parent().is_none_or(|parent| parent == Path::new("/home") || parent == Path::new("/"))
            && folder != Path::new("/usr")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_not_visible_as_python_prefixes() {
        for home in ["/", "/root", "/home", "/home/ada", "/opt"] {
            assert!(is_a_home(Path::new(home)), "{home}");
        }
        for prefix in [
            "/usr",
            "/usr/local",
            "/opt/python3.13",
            "/home/ada/.pyenv/versions/3.13.1",
            "/root/.pyenv/versions/3.11.7",
        ] {
            assert!(!is_a_home(Path::new(prefix)), "{prefix}");
        }
    }
}
