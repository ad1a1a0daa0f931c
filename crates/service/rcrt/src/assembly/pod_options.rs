//! The options of programs in pods, and the settings that they give.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use rcrt_pods::{ClusterAccess, ImageByDigest, Settings, placement};
use rcrt_processes::{BASH, PYTHON};
use url::Url;

use crate::exit::{Failure, fail};

/// Where a pod finds what it needs to reach the API server.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

#[derive(Debug, Args)]
#[command(next_help_heading = "Options for pods")]
pub struct PodOptions {
    /// The image of the programs by its digest, NAME@sha256:…; it needs Python 3, and bash for the
    /// tool bash
    #[arg(long, env = "RCRT_SCRIPTS_IMAGE", value_name = "IMAGE")]
    image: ImageByDigest,

    /// A tool whose programs run in pods: execute_python_script or bash. Can be repeated, or
    /// separated by commas
    #[arg(long = "pod-tool", env = "RCRT_POD_TOOLS", value_name = "NAME", value_delimiter = ',',
        default_value = PYTHON, value_parser = PossibleValuesParser::new([PYTHON, BASH]))]
    tools: Vec<String>,

    /// Maximum number of pods at the same time
    #[arg(long, env = "RCRT_MAX_PODS", value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u16).range(1..=500))]
    max_pods: u16,

    /// How long a pod can take to start, with the pull of its image, in seconds
    #[arg(long, env = "RCRT_POD_START_SECONDS", value_name = "SECONDS", default_value_t = 60,
        value_parser = clap::value_parser!(u16).range(5..=600))]
    pod_start_seconds: u16,

    /// The package index that scripts get packages from; without it, packages are refused
    #[arg(long, env = "RCRT_PACKAGE_INDEX", value_name = "URL", value_parser = package_index)]
    package_index: Option<Url>,

    /// A persistent volume claim that is the working folder of programs; without it, bash has an
    /// empty one and keep_files is refused
    #[arg(long, env = "RCRT_WORKDIR_CLAIM", value_name = "NAME")]
    workdir_claim: Option<String>,

    /// Run programs although it is not proved that their pods reach no network
    #[arg(long, env = "RCRT_ACCEPT_OPEN_NETWORK")]
    accept_open_network: bool,

    /// Run pods as users of their node, for nodes without user namespaces
    #[arg(long, env = "RCRT_SHARE_USERS")]
    share_users: bool,

    /// A JSON file with more fields of each pod: affinity, imagePullSecrets, nodeSelector,
    /// priorityClassName, runtimeClassName, tolerations
    #[arg(long, env = "RCRT_POD_PLACEMENT", value_name = "FILE")]
    pod_placement: Option<PathBuf>,

    /// The namespace of the pods [default: that of this pod]
    #[arg(long, env = "RCRT_SCRIPTS_NAMESPACE", value_name = "NAME")]
    namespace: Option<String>,

    /// The URL of the API server [default: that of this cluster]
    #[arg(long, env = "RCRT_KUBERNETES", value_name = "URL", value_parser = api_server)]
    kubernetes: Option<Url>,

    /// A file with the API server's certificate authority
    #[arg(
        long,
        env = "RCRT_KUBERNETES_CA",
        value_name = "FILE",
        default_value = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
    )]
    kubernetes_ca: PathBuf,

    /// A file with the token for the API server; it is read for each request
    #[arg(
        long,
        env = "RCRT_KUBERNETES_TOKEN",
        value_name = "FILE",
        default_value = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    )]
    kubernetes_token: PathBuf,
}

fn package_index(text: &str) -> Result<Url, String> {
    let url =
        Url::parse(text).map_err(|error| format!("{error}; expected a URL such as https://pypi.example.com/simple"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("must start with http:// or https:// and name a host".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must contain no user and no password: each pod shows it".into());
    }
    Ok(url)
}

fn api_server(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; expected a URL such as https://10.96.0.1:443"))?;
    if url.scheme() == "https" && url.has_host() {
        Ok(url)
    } else {
        Err("must start with https:// and name a host".into())
    }
}

impl PodOptions {
    /// The names of the tools whose programs run in pods.
    pub fn tools(&self) -> Vec<String> {
        self.tools.clone()
    }

    pub fn max_pods(&self) -> usize {
        usize::from(self.max_pods)
    }

    pub fn settings(&self) -> anyhow::Result<Settings> {
        let access = ClusterAccess {
            url: self.api_server()?,
            authority: self.kubernetes_ca.clone(),
            token: self.kubernetes_token.clone(),
            namespace: self.namespace()?,
        };
        let placement = match &self.pod_placement {
            None => serde_json::Map::new(),
            Some(file) => {
                let wrong = |error: String| Failure::Usage(format!("--pod-placement {}: {error}", file.display()));
                let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
                placement(&text).map_err(wrong)?
            }
        };
        Ok(Settings {
            access,
            image: self.image.clone(),
            tools: self.tools.iter().cloned().collect(),
            max_pods: self.max_pods(),
            start: Duration::from_secs(self.pod_start_seconds.into()),
            package_index: self.package_index.clone(),
            workdir_claim: self.workdir_claim.clone(),
            share_users: self.share_users,
            accept_open_network: self.accept_open_network,
            placement,
        })
    }

    fn api_server(&self) -> anyhow::Result<Url> {
        if let Some(url) = &self.kubernetes {
            return Ok(url.clone());
        }
        let (host, port) = (std::env::var("KUBERNETES_SERVICE_HOST"), std::env::var("KUBERNETES_SERVICE_PORT"));
        let (Ok(host), Ok(port)) = (host, port) else {
            fail!(Usage, "this process is not in a pod, so it does not know the API server; set --kubernetes");
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        Ok(Url::parse(&format!("https://{host}:{port}"))?)
    }

    fn namespace(&self) -> anyhow::Result<String> {
        if let Some(name) = &self.namespace {
            return Ok(name.clone());
        }
        let file = Path::new(SERVICE_ACCOUNT).join("namespace");
        let read = std::fs::read_to_string(file).ok().map(|text| text.trim().to_owned());
        read.filter(|name| !name.is_empty()).ok_or_else(|| {
            let message = "this process is not in a pod, so it does not know its namespace; set --namespace";
            Failure::Usage(message.to_owned()).into()
        })
    }
}
