//! One call: evaluate the tool's module unless it was kept, call `execute`, return its result.

use std::task::Poll;

use breadcrumb::ErrorCode;
use bytes::Bytes;
use deno_core::error::CoreError;
use deno_core::{ModuleId, ModuleSpecifier, PollEventLoopOptions, v8};
use sandbox::Task;
use sandbox::protocol::{CallResult, CallStart, Kind, MAX_CODE_CACHE_BYTES};
use serde_json::value::RawValue;

use crate::engine::Isolate;
use crate::link::Link;
use crate::loader::Module;
use crate::ops::Clock;
use crate::outcome::{failed, from_engine, from_invoke};

/// A call as it came from the parent.
pub struct Work {
    pub call: u32,
    pub start: CallStart,
    /// What an engine made of the script's text before.
    pub cache: Option<Bytes>,
}

/// Runs to the tool's own end. Ended from outside, it gives an error that the caller knows better than to report.
pub async fn run(isolate: &mut Isolate, link: &Link, Work { start, cache, .. }: Work) -> CallResult {
    if let Some(javascript) = start.javascript {
        let module = Module { javascript, cache, wants_cache: start.wants_cache };
        match evaluate(isolate, link, &start.file_name, module).await {
            Ok(Some(execute)) => isolate.execute = Some(execute),
            Ok(None) => {
                return failed(
                    ErrorCode::ExecutionFailed,
                    "the tool exports no function execute; write: export async function execute(input, context)",
                );
            }
            Err(error) => return from_engine(&error, start.memory_mb),
        }
    }
    let Some(execute) = isolate.execute.clone() else {
        return failed(ErrorCode::ExecutionFailed, "the call came without the tool's code");
    };
    if start.task == Task::Check {
        return CallResult::Ok(RawValue::NULL.to_owned());
    }
    let result = match invoke(isolate, execute, start.input.get(), start.context.get()).await {
        Ok(text) => from_invoke(text, start.memory_mb),
        Err(error) => from_engine(&error, start.memory_mb),
    };
    if start.keep {
        settle(isolate).await;
    }
    result
}

/// Lets what is ready to go on do so now, in the call that began it; what then still waits is seen to be waiting.
async fn settle(isolate: &mut Isolate) {
    let _ = std::future::poll_fn(|context| {
        let polled = isolate.runtime.poll_event_loop(context, PollEventLoopOptions::default());
        Poll::Ready(polled.is_ready())
    })
    .await;
}

/// Evaluates the module; gives its `execute` when that is a function.
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
        // The engine's host hands it over in the next turn. None of the script's code has run, and none may before the
        // parent has it.
        settle(isolate).await;
        let made = isolate.main.take_made().filter(|made| made.len() <= MAX_CODE_CACHE_BYTES);
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
    let Some(name) = v8::String::new(scope, "execute") else { return Ok(None) };
    let execute = namespace.get(scope, name.into()).and_then(|value| v8::Local::<v8::Function>::try_from(value).ok());
    Ok(execute.map(|execute| v8::Global::new(scope, execute)))
}

/// A tool as small as they come.
const REHEARSAL: &str = "export async function execute(input, context) { return { sum: input.a + input.b } }";
const NO_CONTEXT: &str = r#"{"request":{"id":""},"secrets":{}}"#;

/// Loads and calls such a tool and keeps nothing of it, so that a copied isolate has in its own memory, and in reach of its
/// process, what every call runs through. Done before a call is there; `name` is another each time.
pub async fn rehearse(isolate: &mut Isolate, name: &str) -> Result<(), CoreError> {
    let specifier = ModuleSpecifier::parse(&format!("rehearsal:{name}"))?;
    isolate.main.rehearse(true);
    let loaded = isolate.runtime.load_side_es_module_from_code(&specifier, REHEARSAL).await;
    isolate.main.rehearse(false);
    let module = loaded?;
    if let Some(execute) = evaluate_module(isolate, module).await? {
        invoke(isolate, execute, r#"{"a":1,"b":2}"#, NO_CONTEXT).await?;
    }
    isolate.runtime.op_state().borrow_mut().put(Clock::new());
    deno_core::scope!(scope, &mut isolate.runtime);
    let nobody = v8::undefined(scope).into();
    v8::Local::new(scope, &isolate.prepare).call(scope, nobody, &[]);
    Ok(())
}

/// The text that `invoke` of `main.js` gives.
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
    let answered = runtime.call_with_args(&isolate.invoke, &arguments);
    let answer = runtime.with_event_loop_promise(Box::pin(answered), PollEventLoopOptions::default()).await?;
    deno_core::scope!(scope, runtime);
    let answer = v8::Local::new(scope, answer);
    Ok(answer.to_rust_string_lossy(scope))
}
