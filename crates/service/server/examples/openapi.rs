//! Prints the OpenAPI document as `sdk/openapi.json` has it.
#![allow(clippy::print_stdout)]

fn main() {
    print!("{}", rcrt_server::api_description());
}
