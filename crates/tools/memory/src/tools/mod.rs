//! The tools.

mod answer;
mod entry;
mod guides;
mod list;
mod result_jsonpath;
mod result_search;
mod result_slice;
mod save;
mod save_skill;
mod search;
mod skills;

use std::sync::Arc;

use rcrt_executors::{NativeTool, ToolCall};
use rcrt_large_results::{EntryKey, Namespace, Settings, WorkingMemory};

use rcrt_breadcrumb::ToolFailure;

/// The tools for working memory, guides, skills and large results. `settings` are those that
/// shorten results.
pub fn tools(settings: Settings) -> Vec<Arc<dyn NativeTool>> {
    vec![
        Arc::new(save::Save),
        Arc::new(entry::Get),
        Arc::new(list::List),
        Arc::new(entry::Delete),
        Arc::new(search::Search),
        Arc::new(guides::ListGuides),
        Arc::new(guides::GetGuide),
        Arc::new(save_skill::SaveSkill),
        Arc::new(skills::GetSkill),
        Arc::new(skills::ListSkills),
        Arc::new(skills::DeleteSkill),
        Arc::new(result_search::ResultSearch { settings: settings.clone() }),
        Arc::new(result_slice::ResultSlice { settings }),
        Arc::new(result_jsonpath::ResultJsonpath),
    ]
}

fn memory(call: &ToolCall) -> WorkingMemory {
    WorkingMemory::of(call)
}

/// The namespace that the input names, else that of the session.
fn namespace(call: &ToolCall, named: Option<&str>) -> Result<Namespace, ToolFailure> {
    match named {
        Some(text) => Namespace::read(text).map_err(|wrong| answer::invalid("namespace", wrong)),
        None => Ok(Namespace::home(&call.request)),
    }
}

fn key(call: &ToolCall, key: &str, named: Option<&str>) -> Result<EntryKey, ToolFailure> {
    EntryKey::read(key, &namespace(call, named)?).map_err(|wrong| answer::invalid("key", wrong))
}
