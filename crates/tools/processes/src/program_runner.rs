//! What both tools share: the jail, the working folder, and its view from inside.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Limits, ToolFailure};
use rcrt_jail::command::{CommandLimits, CommandSpec, FilesystemView, Finished, Jail, JailError, make_folder};
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::disk::DiskBounds;
use crate::working_folder::WorkingFolder;

/// The path of the working folder in the jail.
pub const FOLDER: &str = "/work";
const MIB: u64 = 1024 * 1024;

pub struct ProgramRunner {
    pub jail: Arc<Jail>,
    workdir: PathBuf,
    disk: DiskBounds,
    /// Programs use this machine's network.
    network: bool,
}

impl ProgramRunner {
    pub fn new(jail: &Arc<Jail>, settings: &Settings, tool: &str) -> Self {
        let network = settings.network.contains(tool);
        Self { jail: jail.clone(), workdir: settings.workdir.clone(), disk: settings.disk, network }
    }

    /// Why programs cannot be run here.
    pub fn missing_requirements(&self) -> Option<String> {
        let reason = self.jail.refusal()?;
        Some(format!("programs can run only in a jail, and this machine does not support one: {reason}"))
    }

    /// A command for a program in the working folder that sees what programs need. It has no
    /// variables yet.
    pub async fn order(&self, limits: &Limits, time: Duration) -> Result<CommandSpec, ToolFailure> {
        let (folder, network) = (self.workdir.clone(), self.network);
        let viewed = tokio::task::spawn_blocking(move || {
            make_folder(&folder)?;
            let mut view = FilesystemView::of_programs(network);
            view.write(&folder, Path::new(FOLDER));
            Ok(view)
        });
        let view = viewed.await.map_err(std::io::Error::other).flatten().map_err(|error: std::io::Error| {
            let message = format!("the working folder cannot be used: {error}");
            ToolFailure::new(ErrorCode::ExecutionFailed, message)
        })?;
        Ok(CommandSpec {
            program: PathBuf::new(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            folder: FOLDER.into(),
            view,
            network,
            bounds: bounds(limits, time),
        })
    }

    /// Runs a command while enough space is left on the disk and in the working folder. If the
    /// command uses up either, it fails, and what it left in the working folder is removed. That
    /// happens in a task, so a call that is cancelled cannot prevent it.
    pub async fn run(&self, order: CommandSpec) -> Result<Finished, ToolFailure> {
        self.disk.check(&self.workdir).await?;
        let (jail, disk, folder) = (self.jail.clone(), self.disk, self.workdir.clone());
        let cancelled = CancellationToken::new();
        let _on_drop = cancelled.clone().drop_guard();
        let task = async move {
            if order.view.writable.is_empty() {
                let stop = async {
                    tokio::select! { low = disk.ran_low(&folder) => low, () = cancelled.cancelled() => over() }
                };
                return jail.run_until(&order, stop).await.map_err(|error| not_run(&error))?;
            }
            let working_folder = WorkingFolder::before(&folder, disk).await?;
            if cancelled.is_cancelled() {
                return Err(over());
            }
            let stop = async {
                tokio::select! {
                    low = disk.ran_low(&folder) => low,
                    full = working_folder.exceeded() => full,
                    () = cancelled.cancelled() => over(),
                }
            };
            let finished = jail.run_until(&order, stop).await.map_err(|error| not_run(&error))?;
            if let Err(failure) = working_folder.check().await {
                working_folder.restore().await;
                return Err(failure);
            }
            finished
        };
        tokio::spawn(task).await.unwrap_or_else(|_| {
            Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the program's end was not seen: internal error"))
        })
    }
}

fn not_run(error: &JailError) -> ToolFailure {
    // A helper that could not start, or died, may work the next time.
    let is_passing = matches!(error, JailError::Start(_) | JailError::Broken(_));
    ToolFailure::new(ErrorCode::ExecutionFailed, error.to_string()).retryable(is_passing)
}

/// The result of a cancelled call, which is not read.
fn over() -> ToolFailure {
    ToolFailure::new(ErrorCode::Cancelled, "the call is over")
}

/// Converts a call's limits to limits of a program.
pub fn bounds(limits: &Limits, time: Duration) -> CommandLimits {
    CommandLimits {
        time,
        processor_time: Duration::from_millis(limits.cpu_ms()),
        cpu_percent: limits.cpu_percent,
        memory: limits.memory_mb * MIB,
        ..CommandLimits::default()
    }
}
