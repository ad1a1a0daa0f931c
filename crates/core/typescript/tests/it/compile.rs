//! Types are removed, the meaning is preserved, and positions map back to the source.

use rcrt_typescript::{Dialect, compile};

fn javascript(source: &str) -> String {
    compile(source, "tool.ts", Dialect::TypeScript).expect("compiles").javascript
}

/// The line and column of `needle`, both from 1, the column in UTF-16 units.
fn position(text: &str, needle: &str) -> (u32, u32) {
    let offset = text.find(needle).unwrap_or_else(|| panic!("{needle:?} in {text}"));
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().encode_utf16().count() + 1;
    (u32::try_from(line).unwrap(), u32::try_from(column).unwrap())
}

#[test]
fn types_are_stripped() {
    let source = "
        interface Input { a: number; b?: string }
        type Pair<T> = [T, T];
        export async function execute(input: Input, context: unknown): Promise<Pair<number>> {
            const twice = <T,>(x: T): Pair<T> => [x, x];
            return twice(input.a!) as Pair<number> satisfies unknown;
        }
    ";
    let javascript = javascript(source);
    for gone in ["interface", "Promise<", ": Input", " as ", "satisfies", "Pair"] {
        assert!(!javascript.contains(gone), "{gone} in {javascript}");
    }
    assert!(javascript.contains("export async function execute(input, context)"), "{javascript}");
}

#[test]
fn enums_namespaces_and_parameter_properties_become_code_without_imports() {
    let source = "
        enum Color { Red, Green = 'g' }
        const enum Size { Big = 3 }
        namespace Tools { export const one = 1; export function two() { return one + 1; } }
        class Point { constructor(public x: number, private readonly y = 2) {} sum() { return this.x + this.y; } }
        abstract class Shape { abstract area(): number; declare label: string; }
        export async function execute() { return [Color.Red, Size.Big, Tools.two(), new Point(1).sum(), Shape]; }
    ";
    let javascript = javascript(source);
    assert!(javascript.contains("this.x = x"), "{javascript}");
    assert!(javascript.contains("Tools"), "{javascript}");
    assert!(!javascript.contains("import"), "{javascript}");
    assert!(!javascript.contains("abstract"), "{javascript}");
}

#[test]
fn new_syntax_is_not_changed() {
    let javascript = javascript(
        "export async function execute(i) { await using x = f(); class A { #p = 1; static { } } return i?.a ?? 2n ** 3n; }",
    );
    for kept in ["await using", "#p", "static {", "?.", "??", "**"] {
        assert!(javascript.contains(kept), "{kept} in {javascript}");
    }
}

#[test]
fn unsupported_syntax_is_refused_with_its_position() {
    for (source, line, column, word) in [
        ("class A {\n  @log method() {}\n}", 2, 3, "decorators"),
        ("class A { accessor x = 1 }", 1, 11, "accessor"),
        ("const a = 1;\nexport = a;", 2, 1, "export ="),
        ("import fs = require('fs');", 1, 13, "require"),
    ] {
        let errors = compile(source, "tool.ts", Dialect::TypeScript).unwrap_err();
        let error = errors.first().unwrap();
        assert_eq!((error.line, error.column), (line, column), "{error}");
        assert!(error.message.contains(word), "{error}");
    }
    compile("const a = <div>hi</div>;", "tool.ts", Dialect::TypeScript).unwrap_err();
}

#[test]
fn syntax_errors_have_line_and_column() {
    let errors = compile("const a = 1;\nconst b = ;\n", "tool.ts", Dialect::TypeScript).unwrap_err();
    assert_eq!((errors[0].line, errors[0].column), (2, 11), "{errors:?}");
    let errors = compile("let a = 1;\nlet a = 2;\n", "tool.ts", Dialect::TypeScript).unwrap_err();
    assert_eq!(errors[0].line, 1, "{errors:?}");
    let errors = compile("let a: number = 1;", "tool.js", Dialect::JavaScript).unwrap_err();
    assert_eq!((errors[0].line, errors[0].column), (1, 6), "{errors:?}");
    // Columns count UTF-16 units: the emoji is two.
    let errors = compile("const a = '😀'; const b = ;", "tool.ts", Dialect::TypeScript).unwrap_err();
    assert_eq!((errors[0].line, errors[0].column), (1, 27), "{errors:?}");
}

#[test]
fn javascript_is_not_changed() {
    let source = "// note\nexport async function execute(input) {\n  return   input; // kept\n}\n";
    let compiled = compile(source, "tool.js", Dialect::JavaScript).unwrap();
    assert_eq!(compiled.javascript, source);
    assert_eq!(compiled.source_map.original(3, 12), Some((3, 12)));
}

#[test]
fn the_source_map_points_to_the_source() {
    let source = "interface Gone {\n  a: number;\n}\n\n// a comment\ntype AlsoGone = string;\nexport async function \
                  execute(input: Gone): Promise<string> {\n  const smile = '😀', after: number = mark(input.a);\n\n  throw \
                  new Error(smile + after);\n}\n";
    let compiled = compile(source, "tool.ts", Dialect::TypeScript).unwrap();
    for needle in ["mark(", "new Error", "execute(", "after =", "throw"] {
        let (line, column) = position(&compiled.javascript, needle);
        let source_needle = if needle == "after =" { "after:" } else { needle };
        assert_eq!(
            compiled.source_map.original(line, column),
            Some(position(source, source_needle)),
            "{needle} in {}",
            compiled.javascript
        );
    }
    assert_eq!(compiled.source_map.original(0, 1), None);
    assert_eq!(compiled.source_map.original(1_000_000, 1), None);
}

#[test]
fn an_empty_source_compiles() {
    assert_eq!(javascript("").trim(), "");
}
