//! One container: the jail that its specification describes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcrt_jail::command::{CommandLimits, CommandSpec, FilesystemView, Finished};
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::State;
use crate::objects::Objects;

const MIB: u64 = 1024 * 1024;
/// A cluster does not bound it.
const PROCESSOR_TIME: Duration = Duration::from_hours(1);

/// The texts of the secrets that a pod mounts, by the name of the volume.
pub struct Volumes {
    texts: HashMap<String, Value>,
}

impl Volumes {
    /// Waits until the secrets exist, as a kubelet does.
    pub async fn mounted(state: &State, spec: &Value) -> Self {
        let mut texts = HashMap::new();
        for volume in spec["volumes"].as_array().into_iter().flatten() {
            if let Some(secret) = volume["secret"]["secretName"].as_str() {
                let found = state.until(|objects| objects.secrets.get(secret).cloned()).await;
                texts.insert(volume["name"].as_str().unwrap().to_owned(), found["data"].clone());
            }
        }
        Self { texts }
    }
}

fn text(data: &Value, key: &str) -> String {
    String::from_utf8(STANDARD.decode(data[key].as_str().unwrap()).unwrap()).unwrap()
}

/// Runs a container to its end.
pub async fn run(state: &State, pod: &Value, container: &Value, (volumes, folders): (&Volumes, &TempDir)) -> Finished {
    let has_packages = pod["metadata"]["labels"]["rcrt/packages"] == "true";
    let network = has_packages || state.objects().open_network;
    let mut view = FilesystemView::of_programs(network);
    for mount in container["volumeMounts"].as_array().into_iter().flatten() {
        let (volume, path) = (mount["name"].as_str().unwrap(), mount["mountPath"].as_str().unwrap());
        if let Some(data) = volumes.texts.get(volume) {
            view.files.push((path.into(), text(data, mount["subPath"].as_str().unwrap())));
        } else if path != "/tmp" {
            let folder = folder(state, &pod["spec"], volume, folders);
            if mount["readOnly"] == true {
                view.read(&folder, Path::new(path));
            } else {
                view.write(&folder, Path::new(path));
            }
        }
    }
    let command: Vec<&str> = container["command"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let limits = &container["resources"]["limits"];
    let number =
        |name: &str, unit: &str| -> u64 { limits[name].as_str().unwrap().strip_suffix(unit).unwrap().parse().unwrap() };
    let time = Duration::from_secs(pod["spec"]["activeDeadlineSeconds"].as_u64().unwrap());
    let order = CommandSpec {
        program: view.program(command[0]).unwrap(),
        arguments: command[1..].iter().map(|one| (*one).to_owned()).collect(),
        environment: environment(&state.objects(), container),
        folder: container["workingDir"].as_str().unwrap().into(),
        view,
        network,
        bounds: CommandLimits {
            time,
            processor_time: PROCESSOR_TIME,
            cpu_percent: number("cpu", "m") / 10,
            memory: number("memory", "Mi") * MIB,
            output: 32 * 1024 * 1024,
            ..CommandLimits::default()
        },
    };
    state.jail.run(&order).await.unwrap()
}

/// The folder of a volume on this machine.
fn folder(state: &State, spec: &Value, volume: &str, folders: &TempDir) -> PathBuf {
    let volumes = spec["volumes"].as_array().unwrap();
    let of = volumes.iter().find(|one| one["name"] == volume).unwrap();
    if let Some(claim) = of["persistentVolumeClaim"]["claimName"].as_str() {
        return state.claim(claim);
    }
    let folder = folders.path().join(volume);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn environment(objects: &Objects, container: &Value) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    // A kubelet adds this to every container.
    all.insert("KUBERNETES_SERVICE_HOST".to_owned(), "10.96.0.1".to_owned());
    all.insert("PATH".to_owned(), rcrt_jail::command::PATH.to_owned());
    for variable in container["env"].as_array().into_iter().flatten() {
        let by_secret = &variable["valueFrom"]["secretKeyRef"];
        let value = match by_secret["name"].as_str() {
            Some(secret) => text(&objects.secrets[secret]["data"], by_secret["key"].as_str().unwrap()),
            None => variable["value"].as_str().unwrap().to_owned(),
        };
        all.insert(variable["name"].as_str().unwrap().to_owned(), value);
    }
    all
}
