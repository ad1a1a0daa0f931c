//! Makes the pod of a program: what runs in its containers, and what they see.

use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Limits, ToolFailure};
use rcrt_executors::ToolCall;
use rcrt_jail::command::{CommandLimits, PATH};
use rcrt_processes::isolation::{Program, SCRIPT, Source};
use rcrt_processes::{BASH_OPTIONS, FOLDER, INPUT, PACKAGES_FOLDER, PIP_OPTIONS, PackageSet};
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use crate::settings::Settings;
use crate::spec::{self, Container, INSTALLER, PROGRAM, PodSpec};

const WRAPPER: &str = include_str!("wrapper.py");
/// The time limit of an installation, and the memory that pip needs, in MiB.
const INSTALL: Duration = Duration::from_mins(5);
const INSTALL_MEMORY_MB: u64 = 512;
/// The most disk space of the packages of one pod, and of a working folder without a claim.
const PACKAGES_SIZE: &str = "2G";
const WORK_SIZE: &str = "1G";
/// The path of a bash command, which the wrapper reads.
const COMMAND: &str = "/run/command";
/// The shell script of an installation. `$0` is the folder, the arguments are the packages. An
/// image without pip installs the one that its Python has.
const INSTALLATION: &str = r#"set -e
mkdir -p "$0/tmp"
python3 -I -m venv --without-pip "$0"
if python3 -m pip --python "$0" --version >/dev/null 2>&1; then
    python3 -m pip --python "$0" OPTIONS -- "$@"
else
    "$0/bin/python" -I -m ensurepip --default-pip >/dev/null
    "$0/bin/python" -m pip OPTIONS -- "$@"
fi
rm -rf "$0/tmp""#;
/// How long the wrapper and the cluster may take around the program.
pub const AROUND: Duration = Duration::from_secs(30);

/// A pod to run, with the texts that it gets by secrets.
pub struct Order {
    pub name: String,
    pub pod: Value,
    /// The name, the key and the text of each. The program is the last: until it exists, no
    /// container starts.
    pub secrets: Vec<(String, &'static str, String)>,
    /// The time limit after its start.
    pub time: Duration,
}

/// How the wrapper runs a program.
fn wrapped(program: &[&str], environment: &[&str], folder: &str, time: Duration) -> Value {
    json!({"program": program, "environment": environment, "folder": folder, "seconds": time.as_secs_f64(),
        "close_network": false})
}

fn command(order: &mut Value, bounds: &CommandLimits) -> Vec<String> {
    order["kept"] = bounds.output.into();
    order["flood"] = bounds.flood.into();
    order["file"] = bounds.file.into();
    let processor = bounds.processor_time.as_millis().div_ceil(1000).max(1) as u64;
    order["processor_seconds"] = processor.into();
    ["python3", "-I", "-c", WRAPPER].into_iter().map(str::to_owned).chain([order.to_string()]).collect()
}

impl Order {
    /// The pod of a program. The failure says what this installation does not have.
    pub fn new(program: Program, call: &ToolCall, created_by: Uuid, settings: &Settings) -> Result<Self, ToolFailure> {
        let name = format!("rcrt-script-{}", Uuid::new_v4().simple());
        let input_name = format!("{name}-input");
        let (folder, time, keeps_files) = (program.folder(), program.time, program.keeps_files);
        let mut secrets = Vec::new();
        let mut environment = Vec::new();
        for (variable, value) in &program.environment {
            if !INPUT.contains(&variable.as_str()) {
                environment.push(spec::variable(variable, value));
                continue;
            }
            let by_secret = json!({"secretKeyRef": {"name": input_name, "key": "input"}});
            environment.push(json!({"name": variable, "valueFrom": by_secret}));
            if secrets.is_empty() {
                secrets.push((input_name.clone(), "input", value.clone()));
            }
        }
        let names: Vec<&str> = program.environment.keys().map(String::as_str).collect();
        let (temporary, mount) = spec::temporary();
        let by_secret = json!({"name": "text", "secret": {"secretName": name, "defaultMode": 0o444}});
        let (mut volumes, mut mounts) = (vec![temporary, by_secret], vec![mount]);
        let mut longest = settings.start + time + AROUND;
        let (mut wrapper, text, path, installer) = match program.source {
            Source::Command(text) => {
                let program: Vec<&str> = ["bash"].into_iter().chain(BASH_OPTIONS).collect();
                let mut wrapper = wrapped(&program, &names, folder, time);
                wrapper["last_argument"] = COMMAND.into();
                (wrapper, text, COMMAND, None)
            }
            Source::Python { script, packages } => {
                let python = match packages {
                    Some(_) => format!("{PACKAGES_FOLDER}/bin/python"),
                    None => "python3".to_owned(),
                };
                let wrapper = wrapped(&[&python, SCRIPT], &names, folder, time);
                let installer = match packages {
                    Some(packages) => {
                        longest += INSTALL;
                        volumes.push(json!({"name": "packages", "emptyDir": {"sizeLimit": PACKAGES_SIZE}}));
                        mounts.push(json!({"name": "packages", "mountPath": PACKAGES_FOLDER, "readOnly": true}));
                        Some(installation(&packages, &call.limits, settings)?)
                    }
                    None => None,
                };
                (wrapper, script, SCRIPT, installer)
            }
        };
        mounts.push(json!({"name": "text", "mountPath": path, "subPath": "text", "readOnly": true}));
        if keeps_files {
            mounts.push(json!({"name": "work", "mountPath": FOLDER}));
            volumes.push(match &settings.workdir_claim {
                Some(claim) => json!({"name": "work", "persistentVolumeClaim": {"claimName": claim}}),
                None => json!({"name": "work", "emptyDir": {"sizeLimit": WORK_SIZE}}),
            });
        }
        // What the policies of the cluster do not close, the wrapper does: the way to the index,
        // and all of it if the operator accepted an open network.
        wrapper["close_network"] = (installer.is_some() || settings.accept_open_network).into();
        let bounds =
            CommandLimits { processor_time: Duration::from_millis(call.limits.cpu_ms()), ..CommandLimits::default() };
        let command = command(&mut wrapper, &bounds);
        let container = Container { name: PROGRAM, command, environment, folder, limits: call.limits, mounts };
        secrets.push((name.clone(), "text", text));
        let time = longest.saturating_sub(settings.start);
        let pod = PodSpec { name: name.clone(), created_by, longest, installer, program: container, volumes };
        Ok(Self { name, pod: pod.json(settings), secrets, time })
    }
}

/// Installs packages from the index that the operator allows, and only built ones, so that no code
/// of theirs runs with the network.
fn installation(packages: &PackageSet, limits: &Limits, settings: &Settings) -> Result<Container, ToolFailure> {
    let Some(index) = &settings.package_index else {
        let message = "pip_packages: this runner has no index that packages can come from; its operator can set one \
                       with --package-index";
        return Err(ToolFailure::new(ErrorCode::PermissionDenied, message));
    };
    let script = INSTALLATION.replace("OPTIONS", &PIP_OPTIONS.join(" "));
    let mut program = vec!["sh", "-c", script.as_str(), PACKAGES_FOLDER];
    program.extend(packages.names());
    let temporary = format!("{PACKAGES_FOLDER}/tmp");
    let mut variables = vec![
        ("PATH", PATH),
        ("HOME", "/tmp"),
        ("TMPDIR", temporary.as_str()),
        ("LANG", "C.UTF-8"),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_INDEX_URL", index.as_str()),
    ];
    if let Some(host) = unencrypted(index) {
        variables.push(("PIP_TRUSTED_HOST", host));
    }
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    let mut wrapper = wrapped(&program, &names, "/tmp", INSTALL);
    let bounds = CommandLimits { processor_time: INSTALL, ..CommandLimits::default() };
    let (_, mount) = spec::temporary();
    Ok(Container {
        name: INSTALLER,
        command: command(&mut wrapper, &bounds),
        environment: variables.iter().map(|(name, value)| spec::variable(name, value)).collect(),
        folder: "/tmp",
        limits: Limits { memory_mb: limits.memory_mb.max(INSTALL_MEMORY_MB), cpu_percent: 100, ..*limits },
        mounts: vec![mount, json!({"name": "packages", "mountPath": PACKAGES_FOLDER})],
    })
}

/// The host of an index that is reached without TLS, which pip otherwise refuses.
fn unencrypted(index: &Url) -> Option<&str> {
    index.host_str().filter(|_| index.scheme() == "http")
}
