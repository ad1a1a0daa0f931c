//! The tools, one in each module.

mod answer;
mod delete;
mod delete_skill;
mod get;
mod get_guide;
mod get_skill;
mod list;
mod list_guides;
mod list_skills;
mod result_jsonpath;
mod result_search;
mod result_slice;
mod save;
mod save_skill;
mod search;

use std::sync::Arc;

use rcrt_executors::{NativeTool, ToolCall};
use rcrt_large_results::{EntryKey, Namespace, Settings, WorkingMemory};

use rcrt_breadcrumb::ToolFailure;

/// The tools for working memory, guides, skills and large results. `settings` are those that
/// shorten results.
pub fn tools(settings: Settings) -> Vec<Arc<dyn NativeTool>> {
    vec![
        Arc::new(save::Save),
        Arc::new(get::Get),
        Arc::new(list::List),
        Arc::new(delete::Delete),
        Arc::new(search::Search),
        Arc::new(list_guides::ListGuides),
        Arc::new(get_guide::GetGuide),
        Arc::new(save_skill::SaveSkill),
        Arc::new(get_skill::GetSkill),
        Arc::new(list_skills::ListSkills),
        Arc::new(delete_skill::DeleteSkill),
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
