//! Another host, as far as one machine can simulate it: a processor, and a network namespace that a
//! pair of virtual interfaces connects to this one.

use std::net::Ipv4Addr;
use std::process::Stdio;

use anyhow::bail;
use tokio::process::Command;

/// The network that RFC 2544 reserves for benchmarks, so that no real host is shadowed.
const NETWORK: [u8; 2] = [198, 18];

/// A host. Dropping it removes its network.
pub struct Host {
    /// Also the number of its processor.
    pub number: usize,
    /// None if this user cannot create one. The runner is then only another process.
    namespace: Option<Namespace>,
}

struct Namespace {
    name: String,
    /// The address of this side of the pair.
    here: Ipv4Addr,
}

impl Host {
    pub async fn new(number: usize) -> Self {
        Self { number, namespace: Namespace::make(number).await.ok() }
    }

    /// The command prefix that starts a program on this host.
    pub fn prefix(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(namespace) = &self.namespace {
            words.extend(["ip", "netns", "exec", &namespace.name].map(str::to_owned));
        }
        words.extend(["taskset", "--cpu-list", &self.number.to_string()].map(str::to_owned));
        words
    }

    /// The address by which it reaches a server that listens on all addresses here.
    pub fn reaches(&self) -> Ipv4Addr {
        self.namespace.as_ref().map_or(Ipv4Addr::LOCALHOST, |namespace| namespace.here)
    }

    pub fn describe(&self) -> &'static str {
        match self.namespace {
            Some(_) => "each runner in its own network namespace, over HTTP",
            None => "each runner in its own process, over HTTP (network namespaces need root)",
        }
    }
}

impl Namespace {
    async fn make(number: usize) -> anyhow::Result<Self> {
        // Two benches at the same time must not collide.
        let own = std::process::id();
        let name = format!("rcrt-bench-{own}-{number}");
        // Names of interfaces have at most 15 characters.
        let (near, far) = (format!("rb{own:x}n{number}"), format!("rb{own:x}f{number}"));
        let net = |last: u8| Ipv4Addr::new(NETWORK[0], NETWORK[1], (own % 250) as u8, number as u8 * 4 + last);
        let (here, there) = (net(1), net(2));
        ip(&["netns", "add", &name]).await?;
        let namespace = Self { name, here };
        let name = &namespace.name;
        ip(&["link", "add", &near, "type", "veth", "peer", "name", &far, "netns", name]).await?;
        ip(&["addr", "add", &format!("{here}/30"), "dev", &near]).await?;
        ip(&["link", "set", &near, "up"]).await?;
        ip(&["-n", name, "addr", "add", &format!("{there}/30"), "dev", &far]).await?;
        ip(&["-n", name, "link", "set", &far, "up"]).await?;
        ip(&["-n", name, "link", "set", "lo", "up"]).await?;
        Ok(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // This removes its interfaces too.
        let _ = std::process::Command::new("ip").args(["netns", "del", &self.name]).stderr(Stdio::null()).status();
    }
}

async fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output().await?;
    if !output.status.success() {
        bail!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
