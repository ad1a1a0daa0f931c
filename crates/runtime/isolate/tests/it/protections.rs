//! What tool code finds when it looks for a way out, and the report.

use std::collections::BTreeMap;

use rcrt_sandbox::ProtectionState;
use rcrt_sandbox::level::names;
use serde_json::json;

use crate::fixture::{shared, value};

#[test]
fn the_engines_own_globals_are_removed() {
    let found = value(
        "const names = ['Deno', '__bootstrap', '__sandbox', 'SharedArrayBuffer', 'Atomics', 'process', 'require', 'Buffer',
             'global', 'Worker', 'WebSocket', 'EventSource', 'navigator', 'localStorage', 'caches', 'alert', 'importScripts'];
         return names.filter((name) => name in globalThis)",
    );
    assert_eq!(found, json!([]));
    let strange = value(
        "return Reflect.ownKeys(globalThis).map(String).filter((k) => /deno|op_|core|internal(?!Error)|primordial|sandbox/i.test(k))",
    );
    assert_eq!(strange, json!([]));
}

#[test]
fn no_op_is_reachable_from_any_global() {
    // Walks everything that is reachable from the global object and looks for functions with names
    // of ops.
    let found = value(
        "const seen = new Set(); const found = []; const queue = [[globalThis, '']];
         while (queue.length) {
             const [o, path] = queue.pop();
             if ((typeof o !== 'object' && typeof o !== 'function') || o === null || seen.has(o)) continue;
             seen.add(o);
             if (typeof o === 'function' && /^op_/.test(o.name)) found.push(path);
             for (const key of Reflect.ownKeys(o)) {
                 if (/^(op_|ops$|core$|__bootstrap)/.test(String(key))) found.push(path + '.' + String(key));
                 const d = Reflect.getOwnPropertyDescriptor(o, key);
                 for (const v of [d.value, d.get, d.set]) queue.push([v, path + '.' + String(key)]);
             }
             queue.push([Reflect.getPrototypeOf(o), path + '.__proto__']);
         }
         return found",
    );
    assert_eq!(found, json!([]));
}

/// Protections that every current Linux supports without privileges.
const WITHOUT_ANY_RIGHTS: [&str; 8] = [
    names::DESCRIPTORS,
    names::PRIVILEGES,
    names::CAPABILITIES,
    names::SECCOMP,
    names::RESOURCE_LIMITS,
    names::NO_CORE_DUMPS,
    names::PARENT_DEATH,
    names::LOW_PRIORITY,
];

#[test]
fn the_report_names_engine_and_protections() {
    let report = shared().report();
    assert!(!report.engine_version.is_empty());
    assert!(report.has_snapshot);
    let found: BTreeMap<&str, &ProtectionState> =
        report.protections.iter().map(|protection| (protection.name.as_str(), &protection.state)).collect();
    assert_eq!(found.len(), report.protections.len(), "a protection is reported twice: {:?}", report.protections);
    assert_eq!(report.missing(), []);
    for name in names::OF_THE_WORKER {
        assert!(found.contains_key(name), "{name}: {found:?}");
    }
    for name in WITHOUT_ANY_RIGHTS {
        assert_eq!(found.get(name), Some(&&ProtectionState::Applied), "{name}");
    }
}

#[test]
fn import_meta_reveals_nothing_about_the_machine() {
    let meta = value("return [typeof import.meta.dirname, typeof import.meta.filename, import.meta.url]");
    assert_eq!(meta, json!(["undefined", "undefined", "tool:///tool.js"]));
}
