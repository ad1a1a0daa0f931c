//! Completion of the arguments of templates. Prompts of guides have no arguments, and the arguments
//! of other prompts are not known here.

use std::collections::BTreeSet;

use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};

use crate::Principal;
use crate::{prompts, resources};

/// `completion/complete`: values that begin with what the user typed.
pub(crate) async fn complete(
    principal: &dyn Principal,
    params: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let values: BTreeSet<String> = match &params.r#ref {
        Reference::Prompt(prompt) => {
            prompts::check_name(principal, &prompt.name).await?;
            BTreeSet::new()
        }
        Reference::Resource(template) if template.uri.starts_with(resources::RECORD) => {
            let newest = resources::newest(&**principal.store()).await?;
            match params.argument.name.as_str() {
                "schema_name" => newest.into_iter().filter_map(|item| item.schema_name).collect(),
                "id" => newest.into_iter().map(|item| item.id.to_string()).collect(),
                _ => BTreeSet::new(),
            }
        }
        _ => BTreeSet::new(),
    };
    let typed = params.argument.value.as_str();
    let matching: Vec<String> = values.into_iter().filter(|value| value.starts_with(typed)).collect();
    let total = u32::try_from(matching.len()).ok();
    let has_more = matching.len() > CompletionInfo::MAX_VALUES;
    let shown = matching.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let completion = CompletionInfo::with_pagination(shown, total, has_more);
    Ok(CompleteResult::new(completion.map_err(|error| ErrorData::internal_error(error, None))?))
}
