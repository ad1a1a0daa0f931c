//! A tool's module that each call evaluates again, in one isolate whose realm is hardened
//! (`js/harden.js`). The module is not in the module map of the engine's host, which would keep
//! every evaluation: the engine reuses the compiled code and collects what an evaluation leaves.

use std::sync::Arc;

use deno_core::error::{CoreError, CoreErrorKind, JsError};
use deno_core::{
    JsRuntime, ModuleSpecifier, PollEventLoopOptions, Resource, ResourceId, register_external_module_import_meta_cb, v8,
};
use deno_web::BlobStoreTrait;

use crate::call::execute_of;
use crate::engine::Isolate;
use crate::loader::refused;
use crate::memory::stack;
use crate::ops::Clock;

/// After this many evaluations the process is replaced, which bounds what no check sees.
const EVALUATIONS: u32 = 10_000;
/// The process is replaced if calls left more than this share of their memory limit above what the
/// isolate held at first, so the next call has nearly all of it.
const GROWTH_SHARE: usize = 4;
/// The process is replaced in any case if calls left this many bytes more.
const MAX_GROWTH: usize = 32 * 1024 * 1024;

/// Garbage is collected when the isolate holds this many bytes more than after the last time. The
/// engine alone would wait for much more.
const GARBAGE: usize = 6 * 1024 * 1024;

/// The module of the only script whose calls the isolate runs.
pub struct ToolModule {
    specifier: v8::Global<v8::String>,
    source: v8::Global<v8::String>,
    evaluations: u32,
    /// What the isolate had before any code of the tool ran: bytes of its heap, and resources.
    held: usize,
    resources: Vec<ResourceId>,
    /// What it had after the last collection of garbage.
    collected: usize,
    /// The engine rejected the code cache of the last evaluation.
    pub is_cache_refused: bool,
    /// The next call finds what the first one found.
    pub is_clean: bool,
}

/// `import.meta.url`.
struct ModuleUrl(String);

/// The error that the engine threw in this scope.
macro_rules! thrown {
    ($scope:ident) => {
        match $scope.exception() {
            Some(exception) if !$scope.has_terminated() => JsError::from_v8_exception($scope, exception).into(),
            _ => CoreErrorKind::ExecutionTerminated.into_box(),
        }
    };
}

/// Gives an isolate in which no tool's code has run to the calls of this script. Its realm is
/// hardened, if it is not yet.
pub fn adopt(isolate: &mut Isolate, file_name: &str, javascript: &str) -> Result<(), CoreError> {
    let url = ModuleSpecifier::parse(&format!("tool:///{file_name}"))?;
    if !isolate.is_hardened {
        call(&mut isolate.runtime, &isolate.harden)?;
        isolate.is_hardened = true;
    }
    let (specifier, source) = {
        deno_core::scope!(scope, &mut isolate.runtime);
        register_external_module_import_meta_cb(scope, import_meta);
        let text = |text: &str| v8::String::new(scope, text).map(|text| v8::Global::new(scope, text));
        match (text(url.as_str()), text(javascript)) {
            (Some(specifier), Some(source)) => (specifier, source),
            _ => return Err(CoreErrorKind::ExecutionTerminated.into_box()),
        }
    };
    let held = isolate.account.held(isolate.runtime.v8_isolate());
    let state = isolate.runtime.op_state();
    let mut state = state.borrow_mut();
    state.put(ModuleUrl(url.into()));
    let resources = state.resource_table.names().map(|(id, _)| id).collect();
    isolate.module = Some(ToolModule {
        specifier,
        source,
        evaluations: 0,
        held,
        resources,
        collected: held,
        is_cache_refused: false,
        is_clean: false,
    });
    Ok(())
}

/// Begins a call: a new clock, new random numbers, and the module's variables as its code sets
/// them. Returns its `execute` if that is a function.
pub async fn evaluate(
    isolate: &mut Isolate,
    hrtime: bool,
    cache: Option<&[u8]>,
) -> Result<Option<v8::Global<v8::Function>>, CoreError> {
    let clock = Clock::new();
    clock.set_fine(hrtime);
    isolate.runtime.op_state().borrow_mut().put(clock);
    let prepared = call(&mut isolate.runtime, &isolate.prepare).map(|_| ());
    let Some(tool) = &mut isolate.module else { return Ok(None) };
    tool.is_clean = false;
    prepared?;
    tool.evaluations += 1;
    let runtime = &mut isolate.runtime;
    let started = {
        deno_core::scope!(scope, runtime);
        start(scope, tool, cache)?
    };
    if let Some(promise) = started.awaits {
        let evaluated = Box::pin(runtime.resolve(promise));
        runtime.with_event_loop_promise(evaluated, PollEventLoopOptions::default()).await?;
    }
    deno_core::scope!(scope, runtime);
    let namespace = v8::Local::new(scope, started.module).get_module_namespace();
    Ok(v8::Local::<v8::Object>::try_from(namespace).ok().and_then(|namespace| execute_of(scope, namespace)))
}

/// Removes what the call left, if nothing of it is pending. Afterwards `is_clean` tells whether
/// another call can follow.
pub fn clean(isolate: &mut Isolate, memory_mb: u64) {
    let allowed = MAX_GROWTH.min(memory_mb as usize * 1024 * 1024 / GROWTH_SHARE);
    let Some(tool) = &mut isolate.module else { return };
    tool.is_clean = false;
    if tool.evaluations >= EVALUATIONS || stack::was_used_up() {
        return;
    }
    let engine = isolate.runtime.v8_isolate();
    let most = tool.held + allowed;
    if isolate.account.held(engine) > most.min(tool.collected + GARBAGE) {
        engine.low_memory_notification();
        tool.collected = isolate.account.held(engine);
    }
    if tool.collected > most {
        return;
    }
    let mut left = Vec::new();
    {
        let state = isolate.runtime.op_state();
        let mut state = state.borrow_mut();
        // The blobs of the call, and their addresses.
        state.borrow::<Arc<dyn BlobStoreTrait>>().clear();
        let ids: Vec<ResourceId> = state.resource_table.names().map(|(id, _)| id).collect();
        for id in ids.into_iter().filter(|id| !tool.resources.contains(id)) {
            left.extend(state.resource_table.take_any(id));
        }
    }
    for resource in left {
        Resource::close(resource);
    }
    tool.is_clean = call(&mut isolate.runtime, &isolate.clean).unwrap_or(false);
}

/// Calls a function of `main.js` without arguments. Returns whether its result is `true`.
fn call(runtime: &mut JsRuntime, function: &v8::Global<v8::Function>) -> Result<bool, CoreError> {
    deno_core::scope!(scope, runtime);
    call_in(scope, function)
}

fn call_in(scope: &mut v8::PinScope<'_, '_>, function: &v8::Global<v8::Function>) -> Result<bool, CoreError> {
    v8::tc_scope!(let scope, scope);
    let receiver = v8::undefined(scope).into();
    match v8::Local::new(scope, function).call(scope, receiver, &[]) {
        Some(value) => Ok(value.is_true()),
        None => Err(thrown!(scope)),
    }
}

struct Started {
    module: v8::Global<v8::Module>,
    /// What its code waits for, if it does.
    awaits: Option<v8::Global<v8::Value>>,
}

/// Compiles the module, from the engine's own cache after the first time, and starts it.
fn start(scope: &mut v8::PinScope<'_, '_>, tool: &mut ToolModule, cache: Option<&[u8]>) -> Result<Started, CoreError> {
    use v8::script_compiler::{CompileOptions, NoCacheReason, Source, compile_module, compile_module2};

    v8::tc_scope!(let scope, scope);
    let name = v8::Local::new(scope, &tool.specifier);
    let text = v8::Local::new(scope, &tool.source);
    let origin = v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, 0, None, false, false, true, None);
    tool.is_cache_refused = false;
    let module = match cache {
        Some(cache) => {
            let cached = v8::CachedData::new(cache);
            let mut source = Source::new_with_cached_data(text, Some(&origin), cached);
            let (consume, reason) = (CompileOptions::ConsumeCodeCache, NoCacheReason::NoReason);
            let module = compile_module2(scope, &mut source, consume, reason);
            tool.is_cache_refused = source.get_cached_data().is_none_or(v8::CachedData::rejected);
            module
        }
        None => compile_module(scope, &mut Source::new(text, Some(&origin))),
    };
    let Some(module) = module else { return Err(thrown!(scope)) };
    if let Some(request) = module.get_module_requests().get(scope, 0) {
        let request = v8::Local::<v8::ModuleRequest>::try_from(request);
        let specifier = request.map(|request| request.get_specifier().to_rust_string_lossy(scope));
        return Err(refused(&specifier.unwrap_or_default()).into());
    }
    if module.instantiate_module(scope, no_module).is_none() {
        return Err(thrown!(scope));
    }
    let Some(promise) = module.evaluate(scope) else { return Err(thrown!(scope)) };
    let state = v8::Local::<v8::Promise>::try_from(promise).map(|promise| promise.state());
    let awaits = if matches!(state, Ok(v8::PromiseState::Fulfilled)) {
        // What the module's code left for later runs before `execute`.
        scope.perform_microtask_checkpoint();
        None
    } else {
        Some(v8::Global::new(scope, promise))
    };
    Ok(Started { module: v8::Global::new(scope, module), awaits })
}

/// Never called: a module with imports is refused before.
fn no_module<'s>(
    _context: v8::Local<'s, v8::Context>,
    _specifier: v8::Local<'s, v8::String>,
    _attributes: v8::Local<'s, v8::FixedArray>,
    _referrer: v8::Local<'s, v8::Module>,
) -> Option<v8::Local<'s, v8::Module>> {
    None
}

/// `import.meta` as the engine's host makes it for a main module.
fn import_meta<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    _module: v8::Local<'_, v8::Module>,
    meta: v8::Local<'_, v8::Object>,
) {
    let state = JsRuntime::op_state_from(scope);
    let url = state.borrow().try_borrow::<ModuleUrl>().map(|url| url.0.clone()).unwrap_or_default();
    let url: Option<v8::Local<'s, v8::Value>> = v8::String::new(scope, &url).map(Into::into);
    let main: v8::Local<'s, v8::Value> = v8::Boolean::new(scope, true).into();
    let resolve: Option<v8::Local<'s, v8::Value>> = v8::Function::new(scope, resolve).map(Into::into);
    for (name, value) in [("url", url), ("main", Some(main)), ("resolve", resolve)] {
        if let (Some(name), Some(value)) = (v8::String::new(scope, name), value) {
            meta.create_data_property(scope, name.into(), value);
        }
    }
}

/// `import.meta.resolve`: a tool imports nothing.
#[expect(clippy::needless_pass_by_value, reason = "the engine's type of a callback")]
fn resolve(scope: &mut v8::PinScope<'_, '_>, arguments: v8::FunctionCallbackArguments<'_>, _: v8::ReturnValue<'_>) {
    let specifier = arguments.get(0).to_rust_string_lossy(scope);
    if let Some(message) = v8::String::new(scope, &refused(&specifier).to_string()) {
        let error = v8::Exception::type_error(scope, message);
        scope.throw_exception(error);
    }
}
