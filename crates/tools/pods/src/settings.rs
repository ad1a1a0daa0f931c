//! The operator's settings of pods.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value};
use url::Url;

use crate::kubernetes::ClusterAccess;

#[derive(Debug, Clone)]
pub struct Settings {
    pub access: ClusterAccess,
    /// The image of the programs. It must have Python 3 as `python3`, and bash for the tool `bash`.
    pub image: ImageByDigest,
    /// The names of the tools whose programs run in pods.
    pub tools: BTreeSet<String>,
    /// The most pods at the same time, including those that are being deleted.
    pub max_pods: usize,
    /// How long a pod can take to start, with the pull of its image.
    pub start: Duration,
    /// The index that packages come from. `None` refuses packages.
    pub package_index: Option<Url>,
    /// A claim of the namespace that is the working folder. `None`: there is none.
    pub workdir_claim: Option<String>,
    /// Pods share the node's users, for nodes without user namespaces.
    pub share_users: bool,
    /// Programs run although pods may reach the network.
    pub accept_open_network: bool,
    /// More fields of each pod's specification; see [`placement`].
    pub placement: Map<String, Value>,
}

/// The reference of an image that cannot change: `NAME@sha256:DIGEST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageByDigest(String);

impl ImageByDigest {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ImageByDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let is_digest = |digest: &str| digest.len() == 64 && digest.chars().all(is_hex);
        match text.split_once("@sha256:") {
            Some((name, digest)) if !name.is_empty() && !name.contains(char::is_whitespace) && is_digest(digest) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err("must name the image by its digest, as NAME@sha256:… with 64 hexadecimal digits: a tag can be \
                      changed"
                .to_owned()),
        }
    }
}

/// The fields with which an operator says where pods run.
const PLACEMENT: [&str; 6] =
    ["affinity", "imagePullSecrets", "nodeSelector", "priorityClassName", "runtimeClassName", "tolerations"];

/// Reads a JSON object with fields that say where pods run, and no others.
pub fn placement(text: &str) -> Result<Map<String, Value>, String> {
    let fields: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("is not a JSON object: {error}"))?;
    match fields.keys().find(|field| !PLACEMENT.contains(&field.as_str())) {
        Some(field) => Err(format!("{field}: cannot be set; expected one of: {}", PLACEMENT.join(", "))),
        None => Ok(fields),
    }
}
