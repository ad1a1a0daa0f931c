//! Prints the OpenAPI document as `sdk/openapi.json` has it.

fn main() {
    print!("{}", server::api_description());
}
