//! A cluster, and the tools whose programs run in its pods.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::ToolFailure;
use rcrt_jail::command::Helper;
use rcrt_pods::{ClusterAccess, Pods, Settings};
use rcrt_test_kubernetes::Cluster;
use rcrt_test_programs::Programs;
use serde_json::{Value, json};

pub const IMAGE: &str =
    "registry.example.com/python@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// Where programs run. The cluster lives as long as the tools.
pub struct Fixture {
    pub cluster: Arc<Cluster>,
    pub programs: Programs,
}

/// A cluster; `None` if this machine cannot run its containers, which is a failure if
/// `RCRT_TEST_NEEDS_JAIL` is set.
pub async fn cluster() -> Option<Arc<Cluster>> {
    let helper = Helper { program: PathBuf::from(env!("CARGO_BIN_EXE_pods-jail-helper")), arguments: Vec::new() };
    match Cluster::start(helper).await {
        Ok(cluster) => Some(Arc::new(cluster)),
        Err(reason) => {
            assert!(std::env::var_os("RCRT_TEST_NEEDS_JAIL").is_none(), "{reason}");
            #[allow(clippy::print_stderr)]
            {
                eprintln!("not tried, for this machine gives no jail: {reason}");
            }
            None
        }
    }
}

pub fn settings(cluster: &Cluster) -> Settings {
    Settings {
        access: ClusterAccess {
            url: cluster.url.clone(),
            authority: cluster.authority(),
            token: cluster.token(),
            namespace: cluster.namespace(),
        },
        image: IMAGE.parse().unwrap(),
        tools: ["bash", "execute_python_script"].map(str::to_owned).into(),
        max_pods: 4,
        start: Duration::from_mins(2),
        package_index: None,
        workdir_claim: None,
        share_users: false,
        accept_open_network: false,
        placement: serde_json::Map::new(),
    }
}

impl Fixture {
    /// With these settings of pods.
    pub async fn with(cluster: &Arc<Cluster>, settings: Settings) -> Self {
        let pods = Pods::start(settings).unwrap();
        let programs = Programs::new(pods.tools(), (pods, cluster.clone())).await;
        Self { cluster: cluster.clone(), programs }
    }

    pub async fn new() -> Option<Self> {
        let cluster = cluster().await?;
        let settings = settings(&cluster);
        Some(Self::with(&cluster, settings).await)
    }

    pub async fn python(&self, script: &str) -> Result<Value, ToolFailure> {
        self.programs.python(script).await
    }

    /// The pods of programs that were created, without those that probe the network.
    pub fn created(&self) -> Vec<Value> {
        let created = self.cluster.created();
        created.into_iter().filter(|pod| is_named(pod, "rcrt-script-")).collect()
    }
}

pub fn is_named(pod: &Value, beginning: &str) -> bool {
    pod["metadata"]["name"].as_str().unwrap().starts_with(beginning)
}

/// The tools for the suite.
pub async fn programs() -> Option<Programs> {
    Some(Fixture::new().await?.programs)
}

pub fn script(text: &str) -> Value {
    json!({"script": text})
}
