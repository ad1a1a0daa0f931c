//! The calls of other tools that a source shows.

use rcrt_typescript::{Dialect, inspect};

/// `(name, line, column)` of the calls in the body of `execute`.
fn calls(body: &str) -> Vec<(String, u32, u32)> {
    let source = format!("export async function execute(input: any, context: any) {{\n{body}\n}}");
    let found = inspect(&source, Dialect::TypeScript).unwrap_or_else(|errors| panic!("{body}: {errors:?}"));
    found.tool_calls.into_iter().map(|call| (call.name, call.line, call.column)).collect()
}

#[test]
fn a_call_whose_name_the_source_shows_is_found() {
    for (body, line, column) in [
        ("return await context.api.callTool('add', input);", 2, 35),
        ("return context.api.callTool(\n  `add`);", 3, 3),
        ("return context['api'][\"callTool\"]('a' + 'dd');", 2, 35),
        ("return context.api?.callTool?.('add');", 2, 32),
        ("return (context as any).api.callTool('add' as string, {});", 2, 38),
        ("const tool = 'add'; return context.api.callTool(tool, input);", 2, 49),
        ("const call = (ctx: any) => ctx.api.callTool('add'); return call(context);", 2, 45),
        ("return [1].map((n) => context.api.callTool('add', { n }));", 2, 44),
    ] {
        assert_eq!(calls(body), [("add".to_owned(), line, column)], "{body}");
    }
    let nested = "return context.api.callTool('outer', await context.api.callTool('inner'));";
    let names: Vec<String> = calls(nested).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["outer", "inner"]);
}

#[test]
fn another_call_is_not_found() {
    for body in [
        "return context.api.callTool(input.tool, input);",
        "return context.api.callTool(`add${1}`, input);",
        "let tool = 'add'; tool = 'other'; return context.api.callTool(tool);",
        "return context.api.callTool(...['add']);",
        "return context.api.callTool();",
        "return context.tools.callTool('add');",
        "return input.callTool('add');",
        "return context.api.createBreadcrumb('add');",
        "// context.api.callTool('add')\nreturn \"context.api.callTool('add')\";",
        "return context.api.callTool;",
    ] {
        assert_eq!(calls(body), [], "{body}");
    }
}

#[test]
fn calls_are_bounded() {
    assert_eq!(calls(&"context.api.callTool('add');".repeat(300)).len(), 200);
}
