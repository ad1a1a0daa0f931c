//! The objects of one pod: its specification, and the secrets that it mounts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcrt_breadcrumb::Limits;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::kubernetes::Pod;
use crate::settings::Settings;

/// The label by which pods are found again after a crash.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by=rcrt-scripts-manager";
/// The label with the id of the process that created the pod.
pub const CREATED_BY: &str = "rcrt/created-by";
/// The annotation with the second of the Unix epoch after which any process can delete the pod.
pub const EXPIRES: &str = "rcrt/expires";
/// The label of pods that install packages. A network policy lets them reach the index.
pub const PACKAGES: &str = "rcrt/packages";

/// The container of the program, and the init container that installs its packages.
pub const PROGRAM: &str = "program";
pub const INSTALLER: &str = "packages";

/// What is added to the time limits of a pod before it expires.
const MARGIN: Duration = Duration::from_mins(2);
/// The size of `/tmp`, as in a jail.
const TEMPORARY: &str = "64Mi";

/// The user of programs.
const USER: u32 = 1000;

/// A container to be, without what all of them have.
pub struct Container {
    pub name: &'static str,
    pub command: Vec<String>,
    pub environment: Vec<Value>,
    pub folder: &'static str,
    pub limits: Limits,
    pub mounts: Vec<Value>,
}

impl Container {
    fn json(self, image: &str) -> Value {
        // A tenth of a percent of a processor is one `m`.
        let cpu = format!("{}m", self.limits.cpu_percent * 10);
        let resources = json!({"cpu": cpu, "memory": format!("{}Mi", self.limits.memory_mb)});
        json!({
            "name": self.name,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": self.command,
            "env": self.environment,
            "workingDir": self.folder,
            "resources": {"requests": resources, "limits": resources},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": self.mounts,
        })
    }
}

/// A pod to be.
pub struct PodSpec {
    pub name: String,
    pub created_by: Uuid,
    /// The time after which the kubelet ends it.
    pub longest: Duration,
    pub installer: Option<Container>,
    pub program: Container,
    pub volumes: Vec<Value>,
}

impl PodSpec {
    pub fn json(self, settings: &Settings) -> Value {
        let image = settings.image.as_str();
        let (key, value) = MANAGED_BY.split_once('=').unwrap_or_default();
        let mut labels = json!({"app.kubernetes.io/name": "rcrt-script", key: value});
        labels[CREATED_BY] = self.created_by.to_string().into();
        if self.installer.is_some() {
            labels[PACKAGES] = "true".into();
        }
        let mut annotations = Map::new();
        annotations.insert(EXPIRES.to_owned(), expires(self.longest).into());
        let mut spec = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 0,
            "activeDeadlineSeconds": self.longest.as_secs().max(1),
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": self.installer.map(|one| one.json(image)).into_iter().collect::<Vec<_>>(),
            "containers": [self.program.json(image)],
            "volumes": self.volumes,
        });
        if !settings.share_users {
            spec["hostUsers"] = false.into();
        }
        for (field, value) in &settings.placement {
            spec[field.as_str()] = value.clone();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "labels": labels, "annotations": annotations},
            "spec": spec,
        })
    }
}

fn expires(longest: Duration) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now + longest + MARGIN).as_secs().to_string()
}

/// Whether any process can delete the pod. One without a readable time was not created here.
pub fn is_expired(pod: &Pod) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    pod.metadata.annotations.get(EXPIRES).and_then(|time| time.parse::<u64>().ok()).is_some_and(|time| time < now)
}

/// A secret with one text. It belongs to the pod with this id, and is deleted with it.
pub fn secret(name: &str, key: &str, text: &str, pod: &Pod) -> Value {
    let mut data = Map::new();
    data.insert(key.to_owned(), STANDARD.encode(text).into());
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid});
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "type": "Opaque",
        "immutable": true,
        "data": data,
    })
}

/// `/tmp`, which counts as memory of the container, as in a jail.
pub fn temporary() -> (Value, Value) {
    let volume = json!({"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": TEMPORARY}});
    (volume, json!({"name": "tmp", "mountPath": "/tmp"}))
}

/// A variable.
pub fn variable(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}
