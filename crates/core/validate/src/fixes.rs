//! How the finding of each rule is fixed, as one instruction.

/// `None` for a rule without a general fix: the message says what would be right.
pub fn fix(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "execute-exported" => "Export the function: export async function execute(input, context) { … }",
        "execute-async" => "Write async before function: export async function execute(input, context) { … }",
        "no-eval" | "no-function-constructor" => "Replace the text by code, or parse data with JSON.parse",
        "no-string-timer" => "Pass a function: setTimeout(() => …, 100)",
        "no-import" | "no-dynamic-import" | "no-require" => {
            "Remove the import and write the code in this file; fetch, crypto, URL and the other globals of the web \
             platform are available"
        }
        "no-import-meta" => "Remove import.meta: a tool has no files",
        "description" => "Describe in one or two sentences what the tool does and when to use it",
        "template-text" => "Replace the text of the template with your own",
        "input-schema" => "Add input_schema: {\"type\": \"object\", \"properties\": {…}}",
        "output-schema" => "Add output_schema: {\"type\": \"object\", \"properties\": {…}}",
        "required-property" => "Add the name to properties, or remove it from required",
        "property-described" => "Add a description to the property",
        "example-required" => "Add an example: {\"description\": …, \"input\": {…}, \"output\": {…}}",
        "example-conforms" => "Correct the example, or the schema that it does not fit",
        "example-matcher" => {
            "Use {\"$any\": true}, {\"$type\": …}, {\"$regex\": …}, {\"$near\": [n, d]} or {\"$literal\": …}"
        }
        "net-host" => "Name a public host, such as api.example.com; only an operator can open a private one",
        "net-too-many" => "Name at most five hosts",
        "net-open" => "List the hosts: \"net\": [\"api.example.com\"]",
        "tools-permission" => "Name the tools that the code calls: \"tools\": [\"calculator\"]",
        "forbidden-permission" => "Set the permission to false",
        "env-permission" => "Remove env, and name what the tool needs in required_secrets",
        "unknown-field" => "Remove or rename the field",
        "misspelled-field" => "Rename the field as the message says, or remove it",
        _ => return None,
    })
}
