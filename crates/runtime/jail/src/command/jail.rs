//! The caller's side: checks whether this machine supports the restrictions, and runs programs
//! under them.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::command_spec::Input;
use super::running::{LiveProgram, Running};
use super::{CommandLimits, CommandSpec, ExitReason, FilesystemView, Finished, JailError};
use crate::cgroup::{Cgroups, Controller};

/// The program that calls [`jailed_command`](super::jailed_command), and its arguments for that.
#[derive(Debug, Clone)]
pub struct Helper {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

/// Runs programs in jails, any number at the same time.
pub struct Jail {
    helper: Helper,
    cgroups: Arc<Cgroups>,
    counted: GroupLimits,
    /// Tracks each helper until it has exited.
    ends: TaskTracker,
    refusal: Option<String>,
}

/// The limits that control groups enforce here. The others are enforced by process limits and by
/// polling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GroupLimits {
    pub memory: bool,
    pub cpu: bool,
    pub processes: bool,
}

impl Jail {
    /// Checks whether the restrictions work here by running a program under them. A jail that fails
    /// the check runs nothing.
    pub async fn open(helper: Helper) -> Self {
        let opened = tokio::task::spawn_blocking(Cgroups::open).await;
        let (cgroups, findings) = opened.unwrap_or_else(|_| Cgroups::none());
        let has = |controller| findings.get(&controller).is_some_and(Result::is_ok);
        let counted = GroupLimits {
            memory: has(Controller::Memory),
            cpu: has(Controller::Cpu),
            processes: has(Controller::Processes),
        };
        Self::with(helper, cgroups, counted).await
    }

    /// The same without control groups.
    pub async fn open_without_groups(helper: Helper) -> Self {
        Self::with(helper, Cgroups::none().0, GroupLimits::default()).await
    }

    async fn with(helper: Helper, cgroups: Cgroups, counted: GroupLimits) -> Self {
        let cgroups = Arc::new(cgroups);
        let mut jail = Self { helper, cgroups, counted, ends: TaskTracker::new(), refusal: None };
        jail.refusal = jail.trial().await.err();
        jail
    }

    async fn trial(&self) -> Result<(), String> {
        let view = FilesystemView::of_programs(false);
        let program = view.program("true").map_err(|error| error.to_string())?;
        let order = CommandSpec {
            program,
            arguments: Vec::new(),
            environment: [].into(),
            folder: "/".into(),
            view,
            network: false,
            bounds: CommandLimits::default(),
        };
        match self.run(&order).await {
            Ok(Finished { how: ExitReason::Exited(0), .. }) => Ok(()),
            Ok(finished) => Err(format!("the trial program `true` failed: {:?}", finished.how)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Why nothing can be run here; `None` if programs can be run.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Runs a program until it exits or reaches a limit. If the future is dropped, the program and
    /// all its descendants are killed.
    pub async fn run(&self, order: &CommandSpec) -> Result<Finished, JailError> {
        match self.run_until(order, std::future::pending::<Infallible>()).await? {
            Ok(finished) => Ok(finished),
            Err(never) => match never {},
        }
    }

    /// The same, but the program is also killed when `stop` completes. Then its value is returned,
    /// after all processes have exited.
    pub async fn run_until<T>(
        &self,
        order: &CommandSpec,
        stop: impl Future<Output = T>,
    ) -> Result<Result<Finished, T>, JailError> {
        self.launch(order, Input::Nothing).await?.finish(order, stop).await
    }

    /// Starts a program with open pipes, for a dialogue. Of `bounds`, `time` bounds only its start;
    /// `output` and `flood` do not apply: the caller reads the pipes.
    pub async fn start(&self, order: &CommandSpec) -> Result<LiveProgram, JailError> {
        self.launch(order, Input::Pipe).await?.live(order).await
    }

    async fn launch(&self, order: &CommandSpec, input: Input) -> Result<Running, JailError> {
        if let Some(reason) = &self.refusal {
            return Err(JailError::Refused(reason.clone()));
        }
        Running::start(&self.helper, &self.cgroups, self.counted, (order, input), &self.ends).await
    }

    /// Returns when all processes of finished calls have exited.
    pub async fn ended(&self) {
        self.ends.close();
        self.ends.wait().await;
        self.ends.reopen();
    }
}
