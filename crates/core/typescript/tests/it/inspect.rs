//! The rules of tool code, by syntax tree.

use rcrt_typescript::{Dialect, Rule, inspect};

const ENTRY: &str = "export async function execute(input, context) { return input; }\n";

fn rules(source: &str) -> Vec<(Rule, u32, u32)> {
    let found = inspect(source, Dialect::TypeScript).unwrap_or_else(|errors| panic!("{source}: {errors:?}")).findings;
    found.iter().map(|finding| (finding.rule, finding.line, finding.column)).collect()
}

/// The rules that `line` violates, after a valid entry.
fn broken(line: &str) -> Vec<Rule> {
    let mut found: Vec<Rule> = rules(&format!("{ENTRY}{line}")).into_iter().map(|(rule, ..)| rule).collect();
    found.dedup();
    found
}

#[test]
fn valid_code_has_no_findings() {
    for line in [
        "const note = 'eval(1) and require(\"x\") and new Function()'; // eval(x), import('y')",
        "/* eval('1') */ const t = `eval(${1})`;",
        "const o = { eval: 1, require() {}, Function: 2 }; o.eval; o.require(); o.Function;",
        "class Parser { evaluate(x) { return x; } eval2() {} } new Parser().evaluate('1+1');",
        "function load(require: (s: string) => void) { require('x'); }",
        "{ const Function = (s: string) => s; Function('a'); }",
        "const f: Function = () => 1; type G = Function; if (f instanceof Function) f();",
        "setTimeout(() => 1, 10); setInterval(execute, 5); const later = 'x'; setTimeout(later.trim, 1);",
        "const obj = { setTimeout(s: string) {} }; obj.setTimeout('not code');",
        "class A { clone() { return new this.constructor(); } } new A().constructor.name;",
        "const text: string = 'a'; text.constructor === String;",
        "const re = /eval\\(/; re.test('eval(');",
        "globalThis.crypto; self.performance; const { crypto: c } = globalThis;",
        "const require = (x: string) => x; require('fs');",
        "function f(globalThis: any) { return globalThis.eval; }",
        "const fn: typeof eval | null = null; type F = typeof globalThis.eval; let f: typeof Function | undefined;",
        "class B { kind() { return this.constructor.name; } } ({}).constructor === Object;",
        "class D { copy() { const C = this.constructor as any; return C.of('x'); } }",
        "function fail(e: Error) { const C = e.constructor as ErrorConstructor; throw new C('again'); }",
        "const key = 'name'; (() => 1)[key]; Reflect.get({ eval: 1 }, 'eval'); Math.PI.constructor;",
        "let c = 'constructor'; c = 'name'; (() => 1)[c];",
    ] {
        assert_eq!(broken(line), [], "{line}");
    }
}

#[test]
fn eval_is_found_under_every_name() {
    for line in [
        "eval('1');",
        "const e = eval;",
        "(0, eval)('1');",
        "eval?.('1');",
        "globalThis.eval('1');",
        "globalThis['eval']('1');",
        "window[`eval`]('1');",
        "self['ev' + 'al']('1');",
        "globalThis.globalThis.eval('1');",
        "(globalThis as any).eval('1');",
        "globalThis!.eval;",
        "globalThis?.eval?.('1');",
        "const g = globalThis; g.eval('1');",
        "const { eval: e } = globalThis;",
        "let e; ({ eval: e } = globalThis);",
        "[eval].map(f => f('1'));",
        "const o = { run: eval };",
        "(await 0, globalThis)?.['eval'];",
        "(await globalThis).eval('1');",
        "const name = 'ev' + 'al'; globalThis[name]('1');",
        "const head = 'ev', whole = head + 'al'; globalThis[whole]('1');",
        "const { [`eval`]: e } = globalThis;",
        "Reflect.get(globalThis, 'eval')('1');",
        "Object.getOwnPropertyDescriptor(globalThis, 'eval')!.value('1');",
    ] {
        assert_eq!(broken(line), [Rule::NoEval], "{line}");
    }
}

#[test]
fn function_constructors_are_found() {
    for line in [
        "new Function('return 1');",
        "Function('return 1')();",
        "const F = Function;",
        "globalThis.Function('x');",
        "globalThis['Function'];",
        "declare const Function: any; Function('x');",
        "(() => 1).constructor('return 1');",
        "(function () {}).constructor;",
        "execute.constructor('return 1');",
        "const f = () => 1; new f.constructor('return 1');",
        "''.constructor.constructor('return 1')();",
        "({})['constructor']['constructor']('return 1');",
        "Object.getPrototypeOf(async function () {}).constructor('x');",
        "const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;",
        "Reflect.getPrototypeOf(function* () {}).constructor;",
        "(() => 1).__proto__.constructor;",
        "const { constructor: C } = () => 1;",
        "class K {} K.constructor('x');",
        "function g(x: any) { return x.constructor('return ' + x)(); }",
        "const F = Math.max.constructor; F('return 1')();",
        "const F = Math.max.constructor; new F('return 1')();",
        "const c = 'constructor'; (() => {})[c]('return 1');",
        "Reflect.get(globalThis, 'Function')('return 1');",
        "Reflect.get(() => 1, 'constructor')('return 1');",
        "function h(x: any) { const F = x.constructor; return F('return 1')(); }",
        "const code = 'return 1'; function k(x: any) { return x.constructor(code)(); }",
        "(0, () => 1).constructor('return 1');",
    ] {
        assert_eq!(broken(line), [Rule::NoFunctionConstructor], "{line}");
    }
}

#[test]
fn timers_with_text_are_found() {
    for line in [
        "setTimeout('alert(1)', 1);",
        "setInterval(`x`, 1);",
        "globalThis.setTimeout('x' + name, 1); declare const name: string;",
        "window['setInterval']('x');",
    ] {
        assert_eq!(broken(line), [Rule::NoStringTimer], "{line}");
    }
}

#[test]
fn imports_are_found() {
    for (line, rule) in [
        ("import('x');", Rule::NoDynamicImport),
        ("const load = (name: string) => import(name);", Rule::NoDynamicImport),
        ("import x from 'x';", Rule::NoImport),
        ("import 'x';", Rule::NoImport),
        ("import type { T } from 'x';", Rule::NoImport),
        ("import { type T } from 'x';", Rule::NoImport),
        ("export { a } from 'x';", Rule::NoImport),
        ("export * from 'x';", Rule::NoImport),
        ("export type { A } from 'x';", Rule::NoImport),
        ("type T = import('x').T;", Rule::NoImport),
        ("require('fs');", Rule::NoRequire),
        ("const r = require;", Rule::NoRequire),
        ("typeof require;", Rule::NoRequire),
        ("declare const require: any; require('x');", Rule::NoRequire),
        ("globalThis.require('x');", Rule::NoRequire),
        ("import.meta.url;", Rule::NoImportMeta),
    ] {
        assert_eq!(broken(line), [rule], "{line}");
    }
}

#[test]
fn findings_have_positions() {
    let source = "export async function execute() {\n  const a = '😀'; eval('1');\n  return new Function('x');\n}\n";
    assert_eq!(rules(source), [(Rule::NoEval, 2, 19), (Rule::NoFunctionConstructor, 3, 14)]);
    let found = inspect(source, Dialect::JavaScript).unwrap().findings;
    assert!(found[0].message.contains("JSON.parse"), "{}", found[0].message);
}

#[test]
fn execute_can_be_exported_in_every_plain_way() {
    for source in [
        "export async function execute() {}",
        "export const execute = async () => 1;",
        "export const other = 1, execute = async function () {};",
        "async function execute() {}\nexport { execute };",
        "async function run() {}\nexport { run as execute };",
        "const run = async () => 1;\nexport { run as execute };",
        "export { execute };\nconst execute = (async () => 1) satisfies unknown;",
        "export async function execute(a: string): Promise<void>;\nexport async function execute(a: unknown) {}",
        "export default async function execute() {}\nexport { execute };",
        "export async function run() {}\nexport { run as 'execute' };",
    ] {
        assert_eq!(rules(source), [], "{source}");
    }
}

#[test]
fn execute_must_be_exported_and_async() {
    for (source, rule) in [
        ("", Rule::ExecuteExported),
        ("async function execute() {}", Rule::ExecuteExported),
        ("export default async function execute() {}", Rule::ExecuteExported),
        ("export default { execute: async () => 1 };", Rule::ExecuteExported),
        ("export type execute = string;", Rule::ExecuteExported),
        ("type execute = string;\nexport type { execute };", Rule::ExecuteExported),
        ("export declare function execute(): void;", Rule::ExecuteExported),
        ("export declare const execute: () => void;", Rule::ExecuteExported),
        ("async function execute() {}\nexport { execute as run };", Rule::ExecuteExported),
        ("export function execute() {}", Rule::ExecuteAsync),
        ("export const execute = () => 1;", Rule::ExecuteAsync),
        ("export async function* execute() {}", Rule::ExecuteAsync),
        ("export let execute: any;", Rule::ExecuteAsync),
        ("export const execute = wrap(async () => 1);\nfunction wrap(f: any) { return f; }", Rule::ExecuteAsync),
        ("export class execute {}", Rule::ExecuteAsync),
    ] {
        let found: Vec<Rule> = rules(source).into_iter().map(|(rule, ..)| rule).collect();
        assert_eq!(found, [rule], "{source}");
    }
}

#[test]
fn a_source_that_does_not_parse_has_errors() {
    let errors = inspect("export async function execute( {", Dialect::TypeScript).unwrap_err();
    assert!(!errors.is_empty());
}

/// Sources that parse as TypeScript and that no engine loads.
#[test]
fn a_source_that_no_engine_loads_has_errors() {
    let mut elsewhere = Vec::new();
    for (line, position) in [
        ("export async function execute() { return 2; }", (1, 23)),
        ("export { nope };", (2, 10)),
        ("const a = 1;\nexport { a as execute };", (0, 0)),
        ("const re = /(/;", (2, 13)),
        ("const re = /[b-a]/u;", (2, 15)),
        ("const re = /a/gg;", (0, 0)),
        ("function f() {} function f() {}", (0, 0)),
        ("class A { m() { return this.#gone; } }", (2, 29)),
        ("break;", (2, 1)),
        ("const b = 1; b = 2; let b;", (0, 0)),
        ("const s = '\\08';", (0, 0)),
        ("await: 1;", (0, 0)),
    ] {
        for dialect in [Dialect::TypeScript, Dialect::JavaScript] {
            let source = format!("{ENTRY}{line}");
            let Err(errors) = inspect(&source, dialect) else { panic!("{line} passes as {dialect:?}") };
            rcrt_typescript::compile(&source, "tool.ts", dialect).unwrap_err();
            if position != (0, 0) && (errors[0].line, errors[0].column) != position {
                elsewhere.push((line, dialect, errors));
            }
        }
    }
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
}

/// Declarations that TypeScript repeats and the engine sees once.
#[test]
fn overloads_and_merged_declarations_are_not_errors() {
    for line in [
        "function f(a: string): void; function f(a: number): void; function f(a: unknown) {}",
        "interface A { a: 1 } interface A { b: 2 } const A = 1; export { A };",
        "function g() {} namespace g { export const x = 1; }",
        "class C {} namespace C { export const x = 1; } interface C { y: 2 }",
        "enum E { A } enum E { B = 1 }",
        "namespace N { export const x = 1; } namespace N { export const y = 2; }",
        "type T = 1; export { T }; export type { T as U };",
        "class O { m(a: string): void; m(a: number): void; m(a: unknown) {} }",
        "const re = /(?<year>\\d{4})-(?<=a)[\\p{L}--[a-z]]\\k<year>/v.test('x');",
    ] {
        assert_eq!(broken(line), [], "{line}");
    }
}

#[test]
fn findings_are_bounded() {
    let found = inspect(&format!("{}{ENTRY}", "eval;".repeat(150_000)), Dialect::TypeScript).unwrap().findings;
    assert_eq!(found.len(), 200);
}
