//! Keys for the inner state of the platform's objects. Tool code cannot obtain them.

use deno_core::{op2, v8};

/// A key that only its holders can use: reflection does not list it, proxies do not see it, and it
/// is not inherited.
#[op2]
pub fn op_sandbox_hidden<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    #[string] description: &str,
) -> Option<v8::Local<'s, v8::Value>> {
    let name = v8::String::new(scope, description)?;
    let key = v8::Private::new(scope, Some(name));
    // The engine's way to make a value of a private key.
    let template = v8::ObjectTemplate::new(scope);
    template.set(name.into(), key.into());
    template.new_instance(scope)?.get(scope, name.into())
}
