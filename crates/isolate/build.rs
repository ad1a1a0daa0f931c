//! Finds the JavaScript of Deno's web platform in the sources of its crates and puts it into the binary: their own
//! extension tables only name files of the machine that built them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const CRATES: [&str; 4] = ["deno_webidl", "deno_web", "deno_fetch", "deno_crypto"];
/// ES modules for parts that tools do not get, and the parts of fetch that this crate replaces.
const LEFT_OUT: [&str; 5] = ["locks.js", "webtransport.js", "22_http_client.js", "26_fetch.js", "27_eventsource.js"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let metadata = cargo_metadata();
    let mut table = String::new();
    for name in CRATES {
        let root = crate_root(&metadata, name);
        let _ = writeln!(table, "pub const {}: &[ExtensionFileSource] = &[", name.to_uppercase());
        for script in scripts(&root) {
            let file = script.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let _ = writeln!(
                table,
                "    ExtensionFileSource::loaded_from_memory_during_snapshot({:?}, ascii_str_include!({:?})),",
                format!("ext:{name}/{file}"),
                script
            );
        }
        table.push_str("];\n");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("web_platform.rs"), table).expect("the build folder can be written");
}

/// Where every package of this build stands, as cargo itself says it.
fn cargo_metadata() -> String {
    let output = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform"])
        .arg(env::var_os("TARGET").expect("cargo sets TARGET"))
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo metadata is UTF-8")
}

/// The folder of a package, from its `"manifest_path":"…/<name>-<version>/Cargo.toml"`.
fn crate_root(metadata: &str, name: &str) -> PathBuf {
    let own = format!("{{\"name\":\"{name}\",\"version\":");
    let package = metadata.find(&own).map(|at| &metadata[at..]);
    let key = "\"manifest_path\":\"";
    let path = package
        .and_then(|text| text.find(key).map(|at| &text[at + key.len()..]))
        .and_then(|text| text.split('"').next())
        .unwrap_or_else(|| panic!("cargo metadata names no package {name}"));
    Path::new(path).parent().expect("a manifest stands in a folder").to_owned()
}

fn scripts(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(root)
        .unwrap_or_else(|error| panic!("{}: {error}", root.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "js"))
        .filter(|path| !LEFT_OUT.iter().any(|name| path.ends_with(name)))
        .collect();
    found.sort();
    found
}
