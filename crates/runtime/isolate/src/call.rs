//! One call: evaluates the tool's module, unless its state was kept, calls `execute`, and returns
//! its result.

use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use deno_core::error::CoreError;
use deno_core::{ModuleId, ModuleSpecifier, PollEventLoopOptions, v8};
use rcrt_breadcrumb::ErrorCode;
use rcrt_sandbox::protocol::{CallResult, CallStart, Kind, MAX_CODE_CACHE_BYTES};
use rcrt_sandbox::{Isolation, Seed, Task};
use serde_json::value::RawValue;

use crate::engine::Isolate;
use crate::link::Link;
use crate::loader::Module;
use crate::ops::Clock;
use crate::outcome::{failed, from_engine, from_evaluation, from_invoke};
use crate::tool_module;

/// A call as it came from the parent.
pub struct Work {
    pub call: u32,
    pub start: CallStart,
    /// The engine's code cache from an earlier isolate.
    pub cache: Option<Bytes>,
}

/// Runs until the tool returns. If the call is terminated from outside, the caller ignores this
/// result.
pub async fn run(isolate: &mut Isolate, link: &Link, Work { start, cache, .. }: Work) -> CallResult {
    if let Some(seed) = start.seed {
        plant(isolate, seed);
    }
    let found = match start.javascript {
        Some(javascript) if start.isolation == Isolation::Call => {
            match tool_module::adopt(isolate, &start.file_name, &javascript) {
                Ok(()) => tool_module::evaluate(isolate, start.hrtime, cache.as_deref()).await,
                Err(error) => Err(error),
            }
        }
        Some(javascript) => {
            let module = Module { javascript, cache, wants_cache: start.wants_cache };
            evaluate(isolate, link, &start.file_name, module).await
        }
        None if isolate.module.is_some() => tool_module::evaluate(isolate, start.hrtime, None).await,
        None if isolate.execute.is_some() => Ok(isolate.execute.clone()),
        None => return failed(ErrorCode::ExecutionFailed, "the call does not contain the tool's code"),
    };
    let execute = match found {
        Ok(Some(execute)) => execute,
        Ok(None) => {
            return failed(
                ErrorCode::ExecutionFailed,
                "the tool does not export a function execute; write: export async function execute(input, context)",
            );
        }
        Err(error) => return from_evaluation(&error, start.memory_mb),
    };
    if start.isolation == Isolation::Tool {
        isolate.execute = Some(execute.clone());
    }
    if start.task == Task::Check {
        return CallResult::Ok(RawValue::NULL.to_owned());
    }
    let result = match invoke(isolate, execute, start.input.get(), start.context.get()).await {
        Ok(text) => from_invoke(text, start.memory_mb),
        Err(error) => from_engine(&error, start.memory_mb),
    };
    if start.isolation != Isolation::Process && settle(isolate).await && start.isolation == Isolation::Call {
        tool_module::clean(isolate, start.memory_mb);
    }
    result
}

/// Seeds the isolate's clock and random generators.
fn plant(isolate: &mut Isolate, seed: Seed) {
    if let Ok(clock) = u64::try_from(seed.now_ms) {
        isolate.runtime.op_state().borrow().borrow::<Clock>().stop_at(Duration::from_millis(clock));
    }
    deno_core::scope!(scope, &mut isolate.runtime);
    let receiver = v8::undefined(scope).into();
    let start = v8::Number::new(scope, seed.now_ms as f64).into();
    let number = v8::Integer::new_from_unsigned(scope, seed.random).into();
    v8::Local::new(scope, &isolate.seed).call(scope, receiver, &[start, number]);
}

/// Polls the event loop once, so that what is ready runs within this call. What still waits
/// afterwards is really pending. Returns whether nothing waits, as far as the event loop knows.
async fn settle(isolate: &mut Isolate) -> bool {
    std::future::poll_fn(|context| {
        let polled = isolate.runtime.poll_event_loop(context, PollEventLoopOptions::default());
        Poll::Ready(matches!(polled, Poll::Ready(Ok(()))))
    })
    .await
}

/// Evaluates the module; returns its `execute` if that is a function.
async fn evaluate(
    isolate: &mut Isolate,
    link: &Link,
    file_name: &str,
    module: Module,
) -> Result<Option<v8::Global<v8::Function>>, CoreError> {
    let specifier = ModuleSpecifier::parse(&format!("tool:///{file_name}"))?;
    let wants_cache = module.wants_cache;
    isolate.main.offer(module);
    let module = isolate.runtime.load_main_es_module(&specifier).await?;
    if wants_cache {
        // The engine's host delivers it in the next turn. The script's code has not run, and must
        // not run before the parent has the cache.
        settle(isolate).await;
        let made = isolate.main.take_code_cache().filter(|made| made.len() <= MAX_CODE_CACHE_BYTES);
        let _ = link.send(Kind::CodeCache, 0, made.unwrap_or_default());
    }
    evaluate_module(isolate, module).await
}

async fn evaluate_module(
    isolate: &mut Isolate,
    module: ModuleId,
) -> Result<Option<v8::Global<v8::Function>>, CoreError> {
    let runtime = &mut isolate.runtime;
    let evaluated = Box::pin(runtime.mod_evaluate(module));
    runtime.with_event_loop_promise(evaluated, PollEventLoopOptions::default()).await?;
    let namespace = runtime.get_module_namespace(module)?;
    deno_core::scope!(scope, runtime);
    let namespace = v8::Local::new(scope, namespace);
    Ok(execute_of(scope, namespace))
}

/// The function `execute` that a module with this namespace exports.
pub fn execute_of<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    namespace: v8::Local<'s, v8::Object>,
) -> Option<v8::Global<v8::Function>> {
    let name = v8::String::new(scope, "execute")?;
    let execute = v8::Local::<v8::Function>::try_from(namespace.get(scope, name.into())?).ok()?;
    Some(v8::Global::new(scope, execute))
}

/// Uses what most tools use. Nothing is sent for its request.
const WARM_UP_TOOL: &str = r#"
export async function execute(input, context) {
  await fetch("https://example.org/", { signal: AbortSignal.abort() }).catch(() => {});
  return { sum: input.a + input.b };
}"#;
const NO_CONTEXT: &str = r#"{"request":{"id":""},"secrets":{}}"#;

/// Loads and calls a small tool and discards it, so that what every call runs through is compiled.
/// `name` must be different each time.
pub async fn warm_up(isolate: &mut Isolate, name: &str) -> Result<(), CoreError> {
    let specifier = ModuleSpecifier::parse(&format!("rehearsal:{name}"))?;
    isolate.main.warm_up(true);
    let loaded = isolate.runtime.load_side_es_module_from_code(&specifier, WARM_UP_TOOL).await;
    isolate.main.warm_up(false);
    let module = loaded?;
    if let Some(execute) = evaluate_module(isolate, module).await? {
        invoke(isolate, execute, r#"{"a":1,"b":2}"#, NO_CONTEXT).await?;
    }
    isolate.runtime.op_state().borrow_mut().put(Clock::new());
    deno_core::scope!(scope, &mut isolate.runtime);
    let receiver = v8::undefined(scope).into();
    v8::Local::new(scope, &isolate.prepare).call(scope, receiver, &[]);
    Ok(())
}

/// The same for an isolate that is hardened here. Returns whether another call can follow, which is
/// so unless there is a defect.
pub async fn warm_up_hardened(isolate: &mut Isolate, memory_mb: u64) -> Result<bool, CoreError> {
    tool_module::adopt(isolate, "rehearsal", WARM_UP_TOOL)?;
    if let Some(execute) = tool_module::evaluate(isolate, false, None).await? {
        invoke(isolate, execute, r#"{"a":1,"b":2}"#, NO_CONTEXT).await?;
        if settle(isolate).await {
            tool_module::clean(isolate, memory_mb);
        }
    }
    Ok(isolate.module.take().is_some_and(|tool| tool.is_clean))
}

/// Calls `invoke` of `main.js` and returns its text.
async fn invoke(
    isolate: &mut Isolate,
    execute: v8::Global<v8::Function>,
    input: &str,
    context: &str,
) -> Result<String, CoreError> {
    let runtime = &mut isolate.runtime;
    let arguments = {
        deno_core::scope!(scope, runtime);
        let text = |text: &str| -> v8::Global<v8::Value> {
            let value: v8::Local<'_, v8::Value> = match v8::String::new(scope, text) {
                Some(text) => text.into(),
                None => v8::undefined(scope).into(),
            };
            v8::Global::new(scope, value)
        };
        let (input, context) = (text(input), text(context));
        let execute = v8::Local::new(scope, execute);
        let execute: v8::Local<'_, v8::Value> = execute.into();
        [v8::Global::new(scope, execute), input, context]
    };
    let called = runtime.call_with_args(&isolate.invoke, &arguments);
    let result = runtime.with_event_loop_promise(Box::pin(called), PollEventLoopOptions::default()).await?;
    deno_core::scope!(scope, runtime);
    let result = v8::Local::new(scope, result);
    Ok(result.to_rust_string_lossy(scope))
}
