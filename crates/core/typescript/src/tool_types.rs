//! The types of tools, from their schemas.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use crate::declare::{comment, declare, pascal_case, unique};

/// The globals of tool code, and the context that `execute` gets, as the text of a `.d.ts` file.
pub const GLOBALS: &str = include_str!("rcrt.d.ts");

/// The names in the namespace that are not those of tools.
const OWN_NAMES: [&str; 4] = ["Catalog", "Name", "Input", "Output"];

/// A tool whose types are declared.
#[derive(Debug, Clone)]
pub struct TypedTool {
    pub name: String,
    pub description: String,
    pub input: Value,
    pub output: Value,
    /// The names of its secrets. `None` for a tool of which only the catalog is known.
    pub secrets: Option<Vec<String>>,
}

/// Declares the types `Input`, `Output` and `Context` of one tool. `Context` needs [`GLOBALS`].
pub fn types_of_tool(input: &Value, output: &Value, secrets: &[String]) -> String {
    declare("Input", input) + &declare("Output", output) + &context(secrets)
}

/// Declares the global namespace `tools`, with a namespace for each tool, and makes the types those
/// of `context.api.callTool`.
pub fn types_of_tools<'t>(tools: impl IntoIterator<Item = &'t TypedTool>) -> String {
    let mut taken: BTreeSet<String> = OWN_NAMES.map(str::to_owned).into();
    let (mut entries, mut namespaces) = (String::new(), String::new());
    for tool in tools {
        let words = pascal_case(&tool.name);
        // A tool's name can be without ASCII letters, or begin with a digit.
        let is_name = words.starts_with(|first: char| first.is_ascii_alphabetic());
        let name = unique(&if is_name { words } else { format!("Tool{words}") }, |name| taken.contains(name));
        taken.insert(name.clone());
        let key = Value::from(tool.name.as_str());
        let _ = writeln!(entries, "    {key}: {{ input: {name}.Input; output: {name}.Output }};");
        let mut types = declare("Input", &tool.input) + &declare("Output", &tool.output);
        if let Some(secrets) = &tool.secrets {
            types += &context(secrets);
        }
        let _ =
            writeln!(namespaces, "{}  namespace {name} {{\n{}  }}", comment(&tool.description, 1), indented(&types));
    }
    format!(
        "declare namespace tools {{\n  interface Catalog {{\n{entries}  }}\n  type Name = keyof Catalog;\n  \
         type Input<N extends Name> = Catalog[N][\"input\"];\n  \
         type Output<N extends Name> = Catalog[N][\"output\"];\n{namespaces}}}\n\n\
         // For context.api.callTool.\ninterface RcrtTools extends tools.Catalog {{}}\n"
    )
}

fn context(secrets: &[String]) -> String {
    let names: Vec<String> = secrets.iter().map(|name| Value::from(name.as_str()).to_string()).collect();
    let names = if names.is_empty() { "never".to_owned() } else { names.join(" | ") };
    format!("type Context = RcrtContext<{names}>;\n")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }).collect()
}
