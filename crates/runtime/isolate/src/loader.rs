//! A tool is one file: its module is provided here, and every import is refused.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::future::{Future, ready};
use std::pin::Pin;

use bytes::Bytes;
use deno_core::error::ModuleLoaderError;
use deno_core::{
    ModuleLoadOptions, ModuleLoadReferrer, ModuleLoadResponse, ModuleLoader, ModuleSource, ModuleSourceCode,
    ModuleSpecifier, ModuleType, ResolutionKind, SourceCodeCacheInfo,
};
use deno_error::JsErrorBox;

/// The tool's module and its code cache.
#[derive(Default)]
pub struct Main {
    module: RefCell<Option<Module>>,
    /// The engine was given a cache.
    had_cache: Cell<bool>,
    made: RefCell<Option<Vec<u8>>>,
    is_warming_up: Cell<bool>,
}

pub struct Module {
    pub javascript: String,
    /// Made by an engine of the same build.
    pub cache: Option<Bytes>,
    /// Whether a code cache should be made.
    pub wants_cache: bool,
}

impl Main {
    /// Sets the module that the engine loads next, once.
    pub fn offer(&self, module: Module) {
        *self.module.borrow_mut() = Some(module);
    }

    /// During a rehearsal the host loads its own modules.
    pub fn warm_up(&self, is_warming_up: bool) {
        self.is_warming_up.set(is_warming_up);
    }

    /// The code cache that the engine made, if one was requested.
    pub fn take_code_cache(&self) -> Option<Vec<u8>> {
        self.made.borrow_mut().take()
    }

    /// Whether the engine rejected the code cache: it then makes another one.
    pub fn was_cache_refused(&self) -> bool {
        self.had_cache.get() && self.made.borrow().is_some()
    }
}

impl ModuleLoader for Main {
    fn resolve(
        &self,
        specifier: &str,
        _referrer: &str,
        kind: ResolutionKind,
    ) -> Result<ModuleSpecifier, ModuleLoaderError> {
        if matches!(kind, ResolutionKind::MainModule) || self.is_warming_up.get() {
            return ModuleSpecifier::parse(specifier).map_err(|_| refused(specifier));
        }
        Err(refused(specifier))
    }

    fn load(
        &self,
        specifier: &ModuleSpecifier,
        referrer: Option<&ModuleLoadReferrer>,
        _options: ModuleLoadOptions,
    ) -> ModuleLoadResponse {
        let module = if referrer.is_none() { self.module.borrow_mut().take() } else { None };
        let Some(module) = module else { return ModuleLoadResponse::Sync(Err(refused(specifier.as_str()))) };
        self.had_cache.set(module.cache.is_some());
        let asks = module.wants_cache || module.cache.is_some();
        let cache = asks.then(|| SourceCodeCacheInfo {
            // Each script has its own cache, so nothing is looked up by the hash.
            hash: 0,
            data: module.cache.map(|cache| Cow::Owned(cache.to_vec())),
        });
        let code = ModuleSourceCode::String(module.javascript.into());
        ModuleLoadResponse::Sync(Ok(ModuleSource::new(ModuleType::JavaScript, code, specifier, cache)))
    }

    fn code_cache_ready(
        &self,
        _specifier: ModuleSpecifier,
        _hash: u64,
        made: &[u8],
    ) -> Pin<Box<dyn Future<Output = ()>>> {
        *self.made.borrow_mut() = Some(made.to_vec());
        Box::pin(ready(()))
    }
}

/// The error for every import of a tool.
pub fn refused(specifier: &str) -> JsErrorBox {
    JsErrorBox::type_error(format!("a tool cannot import anything (\"{specifier}\"); its code is one file"))
}
