//! No source can crash the process.

use proptest::prelude::*;
use rcrt_typescript::{Dialect, MAX_SOURCE_BYTES, compile, inspect};

/// Compiles and inspects; only a crash matters, not the result.
fn survives(source: &str) -> bool {
    let dialects = [Dialect::TypeScript, Dialect::JavaScript];
    dialects.iter().all(|dialect| inspect(source, *dialect).is_ok() & compile(source, "tool.ts", *dialect).is_ok())
}

#[test]
fn deep_nesting_is_an_error() {
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("[", "", "]"),
        ("{", "", "}"),
        ("({a:", "1", "})"),
        ("`${", "1", "}`"),
        ("f(", "", ")"),
        ("()=>", "1", ""),
        ("a=>", "1", ""),
        ("a=", "1", ""),
        ("!", "1", ""),
        ("- ", "1", ""),
        ("+-", "1", ""),
        ("typeof ", "1", ""),
        ("new ", "a", ""),
        ("a?b:", "c", ""),
        ("a?", "b", ":c"),
        ("a**", "b", ""),
        ("a+", "b", ""),
        ("a||", "b", ""),
        ("a??", "b", ""),
        ("a.", "b", ""),
        ("a", "", "()"),
        ("a", "", "[0]"),
        ("a", "", "``"),
        ("a", "", ".b"),
        ("1..", "b", ".b"),
        ("if(a)", "b", ""),
        ("if(a);else ", "b", ""),
        ("if(a){}else ", "b", ""),
        ("if(a)b,c\nelse ", "b", ""),
        ("for(;;)", "b", ""),
        ("while(1)", "b", ""),
        ("do ", "b", " while(1)"),
        ("x: ", "b", ""),
        ("a: b: while(1) x, ", "b", ""),
        ("function f(){", "", "}"),
        ("(function(){while(1)while(1) x,", "1", "})"),
        ("class A extends ", "B", " {}"),
        ("class{a=", "1", "}"),
        ("x={a=", "1", "}"),
        ("[a,", "b", "]=c"),
        ("try{", "", "}catch{}"),
        ("switch(a){case 1:", "", "}"),
        ("async()=>await ", "1", ""),
        ("let x: A<", "B", ">"),
        ("A<", "B", ">"),
        ("type A = B<", "C", ">"),
        ("type A = ", "C", "[]"),
        ("keyof\n", "C", ""),
        ("A extends B ? C : ", "D", ""),
        ("A<P, X extends Y ? Z : ", "W", ">"),
        ("() => ", "void", ""),
        ("{a:", "string", "}"),
        ("a as ", "T", ""),
        ("a", "", " as T"),
        ("a", "", "\nas T"),
        ("a", "", "!"),
        ("<T>", "a", ""),
        ("namespace A.", "B", "{}"),
        ("namespace A{", "", "}"),
        ("@a(", "", ")"),
        ("import(", "'x'", ")"),
        ("yield ", "a", ""),
        ("...", "a", ""),
        ("\"(\"+(", "1", ")"),
        ("/[(\"`]/.x(", "1", ")"),
        ("a/(", "1", ")"),
        ("{}={}=", "1", ""),
        ("//", "\n", ""),
        ("/*", "", "*/"),
    ] {
        for prefix in
            ["", "x = ", "type X = ", "let x: ", "export async function execute() { return ", "for (const x of "]
        {
            // Far too deep, and as deep as the parser accepts.
            for many in [100_000, 2_900, 1_400, 700] {
                let mut source = format!("{prefix}{}{middle}{}", open.repeat(many), close.repeat(many));
                source.truncate(MAX_SOURCE_BYTES);
                survives(&source);
            }
        }
    }
}

#[test]
fn moderately_deep_code_compiles() {
    let parentheses = format!("export const a = {}1{};", "(".repeat(500), ")".repeat(500));
    let sum = format!("export const a = {}1;", "1 + ".repeat(1000));
    let many_statements = "foo(1)\nconst x = { a: 1, b: [1, 2] }\nbar.baz?.(`t${x}t`)\n".repeat(5000);
    let table = format!("export const t = [{}];", "{ a: 1, b: 'x', c: y ? z : w },\n".repeat(10_000));
    let rest = "declare const x: any, y: any, z: any, w: any, foo: any, bar: any;\n";
    for source in [parentheses, sum, many_statements.replace("const x", "var x"), format!("{rest}{table}")] {
        if let Err(errors) = compile(&source, "tool.ts", Dialect::TypeScript) {
            panic!("{errors:?} for {}", source.get(..100).unwrap());
        }
    }
}

#[test]
fn a_source_that_is_too_long_is_an_error() {
    let errors = compile(&" ".repeat(MAX_SOURCE_BYTES + 1), "tool.ts", Dialect::TypeScript).unwrap_err();
    assert!(errors[0].message.contains("at most 1048576"), "{errors:?}");
}

#[test]
fn slashes_divide_and_start_regular_expressions() {
    let source = r#"
        const type = 4, from = 2, of2 = 3; let i = 8;
        const a = type / from / 2, b = (1) / 2, c = [1][0] / 2, d = "x" / 2, e = i++ / 2, f = `t` / 2;
        const g = i! / 2, h = /["'`]/.test("x"), j = !/[/\]]/g.test("y"), k = [/a/, /b/].map((r) => r.source);
        if (a) /x/.exec("x");
        while (false) /[(]/y.test("");
        function n() { return /`/; }
        const o = a ? /'/ : /"/, p = { re: /(/.source.length / 2 };
        const q = 1 /* / */ / 2; // /
        const s = x.return / 2, t = x?.if(1) / 2, u = .5/2, v = 1./2, w = a
            / b / c;
        declare const x: any;
    "#
    .replace("/(/", "/\\(/");
    compile(&source, "tool.ts", Dialect::TypeScript).unwrap();
    // If the scan cannot decide, it refuses the source.
    let errors = compile("if (a) {}\n/x/.test('x');", "tool.js", Dialect::JavaScript).unwrap_err();
    assert_eq!((errors[0].line, errors[0].column), (2, 1));
    assert!(errors[0].message.contains("constant"), "{errors:?}");
}

/// The parser of patterns is recursive too.
#[test]
fn deep_patterns_are_errors() {
    for (open, close, flags) in
        [("(", ")", ""), ("[", "]", "v"), ("(?:", ")", "u"), ("(?=", ")", ""), ("[^[", "]]", "v")]
    {
        for many in [200_000, 990, 490] {
            let mut source = format!("/{}a{}/{flags}", open.repeat(many), close.repeat(many));
            source.truncate(MAX_SOURCE_BYTES);
            survives(&source);
        }
    }
    assert!(survives(&format!("/{}a{}/", "(".repeat(900), ")".repeat(900))));
}

fn fragment() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "`",
        "${",
        "\"",
        "'",
        "/",
        "\\",
        "\n",
        ";",
        ",",
        ":",
        "?",
        "=>",
        "=",
        "<",
        ">",
        "!",
        "++",
        ".",
        "...",
        "a",
        "b",
        "1",
        "if",
        "else",
        "for",
        "while",
        "do",
        "async",
        "await",
        "function",
        "class",
        "extends",
        "as",
        "keyof",
        "new",
        "typeof",
        "export",
        "import",
        "from",
        "execute",
        "eval",
        "of",
        "yield",
        "type",
        "interface",
        "enum",
        "namespace",
        "@",
        "#p",
        "//",
        "/*",
        "*/",
        " ",
        "😀",
        "\u{2028}",
        "\u{0}",
        "é",
        "in",
        "let",
        "const",
        "declare",
        "abstract",
        "static",
        "get",
        "case",
        "default",
        "switch",
        "try",
        "catch",
        "0x",
        "1n",
        "&",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn any_text_is_handled(text in "\\PC{0,200}") {
        survives(&text);
    }

    #[test]
    fn any_tokens_are_handled(parts in prop::collection::vec(fragment(), 0..60)) {
        survives(&parts.concat());
        survives(&parts.join(" "));
    }

    #[test]
    fn any_repeated_tokens_are_handled(parts in prop::collection::vec(fragment(), 1..6), close in fragment()) {
        let many = parts.join(" ").repeat(20_000);
        survives(&many);
        survives(&format!("{many}{}", close.repeat(20_000)));
    }
}
