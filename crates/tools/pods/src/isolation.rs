//! Programs of tools in pods.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::ToolCall;
use rcrt_jail::command::{CommandLimits, ExitReason, Finished};
use rcrt_processes::isolation::{Program, Source};
use rcrt_processes::{Isolation, exit_status, not_installed, tell_version};
use serde_json::{Map, Value, json};

use crate::lifecycle::{Ended, PodRuns, failure};
use crate::network_proof::NetworkProof;
use crate::order::Order;
use crate::report::Report;
use crate::spec::{INSTALLER, PROGRAM};

pub struct InPods {
    pub runs: Arc<PodRuns>,
    pub proof: Arc<NetworkProof>,
}

#[async_trait]
impl Isolation for InPods {
    fn name(&self) -> &'static str {
        "pod"
    }

    async fn ready(&self) {
        self.proof.known().await;
    }

    fn missing_requirements(&self, _tool: &str) -> Vec<String> {
        self.proof.refusal().into_iter().collect()
    }

    async fn run(
        &self,
        program: Program,
        call: &ToolCall,
        metadata: &mut Map<String, Value>,
    ) -> Result<Finished, ToolFailure> {
        if let Some(refusal) = self.proof.refusal() {
            return Err(ToolFailure::new(ErrorCode::PermissionDenied, refusal));
        }
        let settings = &self.runs.settings;
        let is_python = matches!(program.source, Source::Python { .. });
        if program.keeps_files && settings.workdir_claim.is_none() {
            if is_python {
                let message = "keep_files: this runner runs programs in pods without a working folder; leave it out, \
                               or ask the operator to set --workdir-claim";
                return Err(
                    ToolFailure::new(ErrorCode::InvalidArguments, message).with_details(json!({"field": "keep_files"}))
                );
            }
            metadata
                .insert("notice".into(), "the working folder was empty at the start and is deleted at the end".into());
        }
        let packages = match &program.source {
            Source::Python { packages: Some(packages), .. } => {
                Some(packages.names().into_iter().map(str::to_owned).collect::<Vec<String>>())
            }
            _ => None,
        };
        let order = Order::new(program, call, self.runs.id, settings)?;
        metadata.insert("pod".into(), order.name.as_str().into());
        let started = Instant::now();
        let ended = self.runs.run(order).await?;
        let kept = CommandLimits::default().output;
        let report = Report::read(&ended.log, kept);
        if ended.is_installer {
            return Err(not_packaged(&ended, &report, &packages.unwrap_or_default()));
        }
        if let Some(version) = report.python.as_deref().filter(|_| is_python) {
            tell_version(version, metadata);
        }
        if let Some(packages) = packages {
            metadata.insert("packages".into(), json!({"set": packages, "installed_now": true}));
        }
        let how = how(&ended, &report)?;
        Ok(Finished { how, stdout: report.stdout, stderr: report.stderr, took: started.elapsed() })
    }
}

/// How the program ended: what the wrapper told, or else what the kubelet did to it.
fn how(ended: &Ended, report: &Report) -> Result<ExitReason, ToolFailure> {
    let end = ended.pod.terminated(PROGRAM);
    let is_reason = |name: &str| end.is_some_and(|end| end.reason == name) || ended.pod.status.reason == name;
    if let Some(how) = report.ended {
        // The kernel can kill the program for its memory and leave the wrapper.
        let is_killed = matches!(how, ExitReason::Signalled(9));
        return Ok(if is_killed && is_reason("OOMKilled") { ExitReason::OutOfMemory } else { how });
    }
    if let Some(why) = &report.failed {
        return Err(failure(format!("the program cannot be started in its pod: {}", exit_status::last(why, 500))));
    }
    if is_reason("OOMKilled") {
        return Ok(ExitReason::OutOfMemory);
    }
    if ended.is_late || is_reason("DeadlineExceeded") {
        return Ok(ExitReason::OutOfTime);
    }
    if is_reason("Evicted") {
        return Err(failure(format!("the pod was evicted: {}", ended.pod.status.message)));
    }
    let told = match end {
        Some(end) if ended.pod.status.reason.is_empty() => {
            format!("exit code {} {} {}", end.exit_code, end.reason, end.message).trim().to_owned()
        }
        _ => ended.pod.end(),
    };
    Err(failure(format!("the pod ended without a result: {told}")))
}

/// Why the init container did not install the packages.
fn not_packaged(ended: &Ended, report: &Report, packages: &[String]) -> ToolFailure {
    let otherwise = format!("{} cannot be installed", packages.join(", "));
    let words = exit_status::text(&report.stderr);
    match report.ended {
        Some(ExitReason::Exited(code)) => not_installed(&otherwise, code, &words),
        _ => {
            let how = ended.pod.terminated(INSTALLER).map_or("", |end| end.reason.as_str());
            not_installed(&format!("{otherwise}: the installation was ended ({how})"), 1, &words)
        }
    }
}
