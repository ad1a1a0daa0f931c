//! The globals that `rcrt.d.ts` declares are those of the sandbox.

use std::collections::BTreeSet;
use std::path::Path;

/// Part of the language, so TypeScript's own library declares them.
const LANGUAGE: &str = "AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array BigUint64Array \
    Boolean DataView Date DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array \
    Function Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number Object Promise Proxy \
    RangeError ReferenceError Reflect RegExp Set String SuppressedError Symbol SyntaxError TypeError URIError \
    Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet decodeURI decodeURIComponent \
    encodeURI encodeURIComponent escape eval globalThis isFinite isNaN parseFloat parseInt undefined unescape";

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Everything that a walk through the sandbox finds, such as `globalThis.URL.canParse`.
fn found() -> BTreeSet<String> {
    let list = read("../../runtime/isolate/tests/golden/platform.txt");
    list.lines().map(|line| line.split([':', '{']).next().unwrap().to_owned()).collect()
}

/// The first word of a line after these words.
fn name_after<'l>(line: &'l str, words: &[&str]) -> Option<&'l str> {
    let mut rest = line.trim_start();
    while let Some(next) = words.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = next;
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

#[test]
fn the_declared_globals_are_those_of_the_sandbox() {
    let found = found();
    let declared = rcrt_typescript::GLOBALS;
    let mut globals = BTreeSet::new();
    let (mut missing, mut members) = (Vec::new(), 0);
    // The global whose members the lines are, and whether they are members of its instances.
    let mut inside: Option<(&str, bool)> = None;
    for line in declared.lines() {
        if let Some(rest) = line.strip_prefix("declare ") {
            let name = name_after(rest, &["class ", "function ", "const ", "namespace "]).unwrap();
            globals.insert(name);
            inside = line.ends_with('{').then_some((name, rest.starts_with("class ")));
        } else if !line.starts_with("  ") {
            inside = None;
        } else if let Some((global, is_class)) = inside
            && !line.starts_with("   ")
            && let Some(name) = name_after(line, &["static ", "readonly ", "class ", "function "])
            && !["constructor", "private", "type", "interface"].contains(&name)
        {
            members += 1;
            let part = if is_class && !line.starts_with("  static ") { ".prototype" } else { "" };
            let path = format!("globalThis.{global}{part}.{name}");
            if !found.contains(&path) {
                missing.push(path);
            }
        }
    }
    assert!(members > 300, "{members} members were compared");
    assert!(missing.is_empty(), "declared, but not in the sandbox: {missing:?}");
    let is_global = |path: &&str| path.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let in_sandbox: BTreeSet<&str> =
        found.iter().filter_map(|path| path.strip_prefix("globalThis.")).filter(is_global).collect();
    let language: BTreeSet<&str> = LANGUAGE.split_whitespace().collect();
    let expected: BTreeSet<&str> = in_sandbox.difference(&language).copied().collect();
    assert_eq!(globals, expected);
}
