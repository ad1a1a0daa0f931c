//! Finds the JavaScript of Deno's web platform in the sources of its crates and embeds it in the
//! binary: their own extension tables only name files of the machine that built them. Of deno_fetch
//! only the scripts are used, so it is not a build dependency; cargo fetches it with the rest of
//! the lock file (the feature `scripts`).
//!
//! The scripts are made strict code, so that a tool's function cannot find its caller through
//! `caller`, `arguments` or a stack frame. The symbols under which their objects store inner state
//! become hidden keys. Their classes are listed, also those that no name leads to. Some of their
//! parts are replaced.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const CRATES: [&str; 4] = ["deno_webidl", "deno_web", "deno_fetch", "deno_crypto"];
/// ES modules for features that tools do not have, and the parts of fetch that this crate replaces.
const LEFT_OUT: [&str; 9] = [
    "locks.js",
    "webtransport.js",
    "01_broadcast_channel.js",
    "16_image_data.js",
    "17_geometry.js",
    "18_css_stylesheet.js",
    "22_http_client.js",
    "26_fetch.js",
    "27_eventsource.js",
];

/// Symbols on prototypes: they are looked up through the prototype chain, and hidden keys are not.
const ON_PROTOTYPES: [&str; 18] = [
    "AsyncSequence",
    "_abortSteps",
    "_body",
    "_cancelSteps",
    "_errorSteps",
    "_iterableHeaders",
    "_mimeType",
    "_pullSteps",
    "_releaseSteps",
    "_updateUrlSearch",
    "add",
    "isConsoleInstance",
    "kNotSerializable",
    "kUncloneable",
    "refMessagePort",
    "remove",
    "runAbortSteps",
    "signalAbort",
];
/// Symbols that Deno's Node layer would share. There is no such layer here.
const REGISTERED: [&str; 2] = ["_controllerErrorFunction", "_isClosedPromise"];
/// Symbols that stay symbols, by file: another file has a symbol of the same name that does not.
const ON_PROTOTYPES_OF: [(&str, &str); 2] = [("23_request.js", "_headers"), ("23_request.js", "_signal")];
/// Parts of scripts that this crate replaces, by file. The boundaries of forms come from our own
/// random numbers: the state of the engine's generator is the same in all copies of a process, and
/// continues from call to call. The timers of `AbortSignal.timeout` are created by
/// `js/system_timers.js`, which ends them with the call.
const REPLACED: [(&str, &str, &str); 4] = [
    (
        "03_abort_signal.js",
        "const { core, primordials } = __bootstrap;",
        "const { core, primordials, internals } = __bootstrap;",
    ),
    ("03_abort_signal.js", "core.createSystemTimer(", "internals.createSystemTimer("),
    (
        "21_formdata.js",
        "const { core, primordials } = __bootstrap;",
        "const { core, primordials, internals } = __bootstrap;const MathRandom = () => internals.random();",
    ),
    ("21_formdata.js", "  MathRandom,\n", "\n"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../../Cargo.lock");
    let metadata = cargo_metadata()?;
    let out = PathBuf::from(variable("OUT_DIR")?);
    let (mut table, mut state) = (String::new(), String::new());
    for name in CRATES {
        writeln!(table, "pub const {}: &[ExtensionFileSource] = &[", name.to_uppercase())?;
        for script in scripts(&crate_root(&metadata, name)?)? {
            let file = script.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let specifier = format!("ext:{name}/{file}");
            let strict = out.join(format!("{name}-{file}"));
            let text = fs::read_to_string(&script)?;
            for variable in text.lines().filter_map(mutable_variable) {
                writeln!(state, "{file} {variable}")?;
            }
            // On the first line, so that positions in stacks do not change.
            let text = replace_parts(&file, hide_keys(&file, &list_classes(&text)))?;
            fs::write(&strict, format!("\"use strict\";{text}"))?;
            let path = strict.to_str().ok_or_else(|| format!("{} is not valid UTF-8", strict.display()))?;
            writeln!(
                table,
                "    ExtensionFileSource::loaded_from_memory_during_snapshot({specifier:?}, ascii_str_include!({path:?})),"
            )?;
        }
        table.push_str("];\n");
    }
    fs::write(out.join("web_platform.rs"), table)?;
    fs::write(out.join("module_state.txt"), state)?;
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("cargo sets {name}: {error}"))
}

/// The path of every package of the workspace, from cargo. On a machine that has only what this
/// build needs, cargo first fetches the rest of the lock file.
fn cargo_metadata() -> Result<String, Box<dyn Error>> {
    let mut last = String::new();
    for network in [&["--offline"][..], &[]] {
        let output = Command::new(variable("CARGO")?)
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &variable("TARGET")?])
            .args(["--features", "scripts"])
            .args(network)
            .output()?;
        if output.status.success() {
            return Ok(String::from_utf8(output.stdout)?);
        }
        last = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    Err(format!("cargo metadata: {last}").into())
}

/// The folder of a package, from its `"manifest_path":"…/<name>-<version>/Cargo.toml"`.
fn crate_root(metadata: &str, name: &str) -> Result<PathBuf, String> {
    let own = format!("{{\"name\":\"{name}\",\"version\":");
    let key = "\"manifest_path\":\"";
    metadata
        .split_once(&own)
        .and_then(|(_, package)| package.split_once(key))
        .and_then(|(_, path)| path.split('"').next())
        .and_then(|path| Path::new(path).parent())
        .map(Path::to_owned)
        .ok_or_else(|| format!("cargo metadata does not contain the package {name}"))
}

/// `const key = Symbol("…")` becomes `const key = __bootstrap.internals.hidden("…")`.
fn hide_keys(file: &str, script: &str) -> String {
    let mut hidden = String::with_capacity(script.len());
    for line in script.split_inclusive('\n') {
        hidden.push_str(&hidden_key(file, line).unwrap_or_else(|| line.to_owned()));
    }
    hidden
}

/// Adds each class of the script to `internals.classes`, on the line of its end.
fn list_classes(script: &str) -> String {
    let mut listed = String::with_capacity(script.len());
    let mut class = None;
    for line in script.split_inclusive('\n') {
        let name = line.strip_prefix("class ").and_then(|rest| rest.split_whitespace().next());
        class = name.or(class);
        match class {
            Some(name) if line.trim_end() == "}" => {
                let _ = writeln!(listed, "}}__bootstrap.internals.classes.push({name});");
                class = None;
            }
            _ => listed.push_str(line),
        }
    }
    listed
}

fn replace_parts(file: &str, mut script: String) -> Result<String, String> {
    for (_, theirs, own) in REPLACED.iter().filter(|(of, ..)| *of == file) {
        if script.matches(theirs).count() != 1 {
            return Err(format!("{file} has {theirs:?} not once, as this build expects"));
        }
        script = script.replace(theirs, own);
    }
    Ok(script)
}

/// The name of the variable of a script that this line declares, if it can change: it is assigned,
/// or holds a collection.
fn mutable_variable(line: &str) -> Option<&str> {
    let (keyword, rest) = line.split_once(' ')?;
    let name = rest.split([' ', ';']).next()?;
    let value = rest.split_once(" = ").map_or("", |(_, value)| value);
    let is_collection = value == "[];" || (value.starts_with("new ") && !value.starts_with("new SafeRegExp"));
    (matches!(keyword, "let" | "var") || keyword == "const" && is_collection).then_some(name)
}

fn hidden_key(file: &str, line: &str) -> Option<String> {
    let (key, rest) = line.strip_prefix("const ")?.split_once(" = Symbol")?;
    let description = match rest.strip_prefix("For(") {
        Some(description) => REGISTERED.contains(&key).then_some(description)?,
        None => rest.strip_prefix('(')?,
    };
    let stays = ON_PROTOTYPES.contains(&key) || ON_PROTOTYPES_OF.contains(&(file, key));
    (!stays).then(|| format!("const {key} = __bootstrap.internals.hidden({description}"))
}

fn scripts(root: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        let is_script = path.extension().is_some_and(|extension| extension == "js");
        if is_script && !LEFT_OUT.iter().any(|name| path.ends_with(name)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
