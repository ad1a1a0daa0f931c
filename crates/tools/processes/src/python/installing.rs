//! Creates an environment in the jail: first the environment itself, without the network, then its
//! packages, with the network for that step only. Only built packages (wheels) are installed, so
//! that no code of theirs runs with the network.

use std::path::Path;
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Limits, ToolFailure};
use rcrt_jail::command::{CommandSpec, FilesystemView, Finished, Jail, JailError, PATH, make_folder};
use serde_json::json;

use super::disk_quota::DiskQuota;
use super::environments::{FOLDER, program};
use super::interpreter::Interpreter;
use super::packages::PackageSet;
use crate::{exit_status, program_runner};

/// The time limit of an installation.
const TIME: Duration = Duration::from_mins(5);
/// The memory that pip needs, in MiB, if the call has less.
const MEMORY_MB: u64 = 512;
const SETTINGS: &str = "/run/pip.conf";
/// The system's error for a file that exceeds the size limit.
const FILE_TOO_LARGE: &str = "File too large";

/// The options of pip, before `--` and the packages.
pub const PIP_OPTIONS: [&str; 9] = [
    "install",
    "--only-binary=:all:",
    "--no-input",
    "--no-cache-dir",
    "--no-compile",
    "--no-warn-script-location",
    "--disable-pip-version-check",
    "--progress-bar=off",
    "--quiet",
];

/// Installs into `folder`, which is empty.
pub async fn install(
    folder: &Path,
    packages: &PackageSet,
    interpreter: &Interpreter,
    jail: &Jail,
    limits: &Limits,
    disk_quota: &DiskQuota,
) -> Result<(), ToolFailure> {
    let step = InstallStep { folder, interpreter, jail, limits, disk_quota };
    let bare = ["-I", "-m", "venv", "--without-pip", FOLDER];
    step.must(bare.map(str::to_owned).into(), "cannot create an environment").await?;
    if !step.has_pip().await? {
        let with_its_own = ["-I", "-m", "ensurepip", "--default-pip"];
        step.must_in(with_its_own.map(str::to_owned).into(), "this machine's Python has no pip and cannot install it")
            .await?;
    }
    step.fill(packages).await
}

struct InstallStep<'a> {
    folder: &'a Path,
    interpreter: &'a Interpreter,
    jail: &'a Jail,
    limits: &'a Limits,
    disk_quota: &'a DiskQuota,
}

impl InstallStep<'_> {
    fn order(&self, arguments: Vec<String>, network: bool) -> CommandSpec {
        let mut view = FilesystemView::of_programs(network);
        self.interpreter.show(&mut view);
        view.write(self.folder, Path::new(FOLDER));
        let time = TIME.min(self.limits.timeout());
        let limits = Limits { memory_mb: self.limits.memory_mb.max(MEMORY_MB), cpu_percent: 100, ..*self.limits };
        let mut bounds = program_runner::bounds(&limits, time);
        bounds.processor_time = time;
        bounds.file = self.disk_quota.largest_file();
        // On the disk, because packages can be larger than the memory limit.
        let temporary = format!("{FOLDER}/tmp");
        let environment = [("PATH", PATH), ("HOME", "/tmp"), ("TMPDIR", temporary.as_str()), ("LANG", "C.UTF-8")];
        CommandSpec {
            program: self.interpreter.program.clone(),
            arguments,
            environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            folder: "/tmp".into(),
            view,
            network,
            bounds,
        }
    }

    async fn run(&self, order: CommandSpec) -> Result<Finished, ToolFailure> {
        self.jail.run(&order).await.map_err(|error| {
            let is_passing = matches!(error, JailError::Start(_) | JailError::Broken(_));
            ToolFailure::new(ErrorCode::ExecutionFailed, error.to_string()).retryable(is_passing)
        })
    }

    /// Whether the machine's own pip exists and can work on another environment.
    async fn has_pip(&self) -> Result<bool, ToolFailure> {
        let order = self.order(["-m", "pip", "--python", FOLDER, "--version"].map(str::to_owned).into(), false);
        let finished = self.run(order).await?;
        Ok(matches!(finished.how, rcrt_jail::command::ExitReason::Exited(0)))
    }

    async fn must(&self, arguments: Vec<String>, otherwise: &str) -> Result<(), ToolFailure> {
        self.succeed(self.order(arguments, false), otherwise).await
    }

    /// Uses the environment's own interpreter.
    async fn must_in(&self, arguments: Vec<String>, otherwise: &str) -> Result<(), ToolFailure> {
        let order = CommandSpec { program: program(), ..self.order(arguments, false) };
        self.succeed(order, otherwise).await
    }

    async fn succeed(&self, order: CommandSpec, otherwise: &str) -> Result<(), ToolFailure> {
        let time = order.bounds.time;
        let finished = self.run(order).await?;
        match exit_status::exit_code(&finished, self.limits, time)? {
            0 => Ok(()),
            code => Err(self.failure(otherwise, code, &finished)),
        }
    }

    async fn fill(&self, packages: &PackageSet) -> Result<(), ToolFailure> {
        let is_own = self.folder.join("bin/pip").exists();
        let pip: &[&str] = if is_own { &["-m", "pip"] } else { &["-m", "pip", "--python", FOLDER] };
        let arguments = pip.iter().copied().chain(PIP_OPTIONS).chain(["--"]).chain(packages.names());
        let mut order = self.order(arguments.map(str::to_owned).collect(), true);
        if is_own {
            order.program = program();
        }
        let settings = self.interpreter.pip_settings().await.map_err(|why| not_ready(&why))?;
        settings.show(&mut order.view);
        order.view.files.push((SETTINGS.into(), settings.file()));
        order.environment.extend(settings.variables());
        order.environment.insert("PIP_CONFIG_FILE".into(), SETTINGS.into());
        let temporary = self.folder.join("tmp");
        self.make_temporary(&temporary).await?;
        let otherwise = format!("{} cannot be installed", packages.names().join(", "));
        self.succeed(order, &otherwise).await?;
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(temporary)).await;
        if let Ok(Err(error)) = removed {
            tracing::debug!(%error, "temporary files of an installation are left in it");
        }
        Ok(())
    }

    async fn make_temporary(&self, folder: &Path) -> Result<(), ToolFailure> {
        let folder = folder.to_owned();
        let made = tokio::task::spawn_blocking(move || make_folder(&folder)).await;
        made.map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| ToolFailure::new(ErrorCode::ExecutionFailed, error.to_string()))
    }

    fn failure(&self, otherwise: &str, code: i32, finished: &Finished) -> ToolFailure {
        let words = self.interpreter.cleared(exit_status::text(&finished.stderr));
        if words.contains(FILE_TOO_LARGE) {
            return self.disk_quota.too_large();
        }
        not_installed(otherwise, code, &words)
    }
}

fn not_ready(why: &str) -> ToolFailure {
    ToolFailure::new(ErrorCode::ExecutionFailed, format!("packages cannot be installed now: {why}")).retryable(true)
}

/// The failure of an installation: what could not be done, and what pip wrote to standard error.
pub fn not_installed(otherwise: &str, code: i32, words: &str) -> ToolFailure {
    let message = format!("{otherwise}: {}", exit_status::last(words.trim(), 2_000));
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
        .with_details(json!({"exit_code": code, "stage": "packages", "stderr": exit_status::last(words, 8_000)}))
}
