//! A tool is one file: whatever it imports is refused.

use deno_core::error::ModuleLoaderError;
use deno_core::{
    ModuleLoadOptions, ModuleLoadReferrer, ModuleLoadResponse, ModuleLoader, ModuleSpecifier, ResolutionKind,
};
use deno_error::JsErrorBox;

pub struct NoImports;

impl ModuleLoader for NoImports {
    fn resolve(
        &self,
        specifier: &str,
        _referrer: &str,
        kind: ResolutionKind,
    ) -> Result<ModuleSpecifier, ModuleLoaderError> {
        if matches!(kind, ResolutionKind::MainModule) {
            return ModuleSpecifier::parse(specifier).map_err(|_| refused(specifier));
        }
        Err(refused(specifier))
    }

    fn load(
        &self,
        specifier: &ModuleSpecifier,
        _referrer: Option<&ModuleLoadReferrer>,
        _options: ModuleLoadOptions,
    ) -> ModuleLoadResponse {
        ModuleLoadResponse::Sync(Err(refused(specifier.as_str())))
    }
}

fn refused(specifier: &str) -> JsErrorBox {
    JsErrorBox::type_error(format!("a tool cannot import anything (\"{specifier}\"); its code is one file"))
}
