//! Changes of builtins that the source shows.

use rcrt_typescript::{Dialect, compile};

fn changes(source: &str) -> bool {
    compile(source, "tool.ts", Dialect::TypeScript).unwrap().changes_builtins
}

#[test]
fn changes_of_builtins_are_found() {
    for source in [
        "Array.prototype.last = function () { return this.at(-1) }",
        "(Array.prototype as any).last ??= () => 1",
        "Math.random = () => 1",
        "Error.stackTraceLimit += 10",
        "(Error as any).prepareStackTrace = () => 1",
        "console[\"log\"] = () => {}",
        "globalThis.console.log = () => {}",
        "delete (Array.prototype as any).at",
        "(Math as any).calls++",
        "Object.defineProperty(String.prototype, \"shout\", { value: 1 })",
        "Object.assign(Promise, { extra: 1 })",
        "Reflect.set(JSON, \"parse\", () => 1)",
        "Object.setPrototypeOf(Map.prototype, null)",
        "function later() { Set.prototype.add = null as any }",
    ] {
        assert!(changes(source), "{source}");
    }
}

#[test]
fn changes_of_a_tools_own_objects_are_not() {
    for source in [
        "class Point { x = 1 } (Point as any).origin = new Point(); (Point.prototype as any).y = 2",
        "(globalThis as any).cache = new Map()",
        "Object.defineProperty(globalThis, \"cache\", { value: 1 })",
        "const all: any = {}; all.a = 1; delete all.a; all.n++; Object.assign(all, { b: 1 })",
        "const Math = { max: 1 }; Math.max = 2",
        "function own(Array: any) { Array.prototype.last = 1 }",
        "const copy = Object.assign({}, Math)",
        "const list = [1]; list.length = 0; list[0] = 2",
        "this",
    ] {
        assert!(!changes(source), "{source}");
    }
}
