//! Prompts: the guides of the tenant, and those that tools provide.

use std::collections::BTreeMap;
use std::sync::Arc;

use rcrt_breadcrumb::{Guide, model_text};
use rmcp::model::{
    CacheScope, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult, PaginatedRequestParams,
    Prompt, PromptMessage, Role,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use crate::Principal;
use crate::errors;
use crate::input_required::{self, Answers, Asked};
use crate::page::{TTL_MS, page};
use crate::published::{self, PublishedPrompt};
use crate::tools;

/// One prompt.
enum Source {
    Guide(Guide),
    Tool(PublishedPrompt),
}

/// A page of the prompts, by name.
pub(crate) async fn list(
    principal: &dyn Principal,
    request: Option<PaginatedRequestParams>,
) -> Result<ListPromptsResult, ErrorData> {
    let prompts: Vec<Prompt> = all(principal).await?.into_values().map(Source::described).collect();
    let (prompts, next_cursor) = page(prompts, |prompt| prompt.name.as_str(), request)?;
    let list = ListPromptsResult { next_cursor, ..ListPromptsResult::with_all_items(prompts) };
    Ok(list.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
}

/// `prompts/get`.
pub(crate) async fn get(
    principal: &Arc<dyn Principal>,
    params: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let prompt = match named(&**principal, &params.name).await? {
        Source::Guide(guide) => {
            let messages = vec![PromptMessage::new_text(Role::User, guide.content)];
            return Ok(GetPromptResult::new(messages).with_description(guide.title).into());
        }
        Source::Tool(prompt) => prompt,
    };
    let given = params.arguments.unwrap_or_default();
    for argument in prompt.arguments.iter().filter(|argument| argument.required == Some(true)) {
        if !given.contains_key(&argument.name) {
            let message = format!("arguments.{} is required by the prompt {}", argument.name, prompt.name);
            return Err(ErrorData::invalid_params(message, None));
        }
    }
    let tool = tools::find(&**principal, &prompt.tool).await?;
    let answers = Answers { responses: params.input_responses, state: params.request_state };
    let output = match input_required::run(principal, &tool, given, answers, context, false).await? {
        Asked::Client(request) => return Ok(request.into()),
        Asked::Ran(ran) => ran.output(&tool.name)?,
    };
    let messages = match output.get("messages") {
        Some(messages) => serde_json::from_value(messages.clone()).map_err(|error| {
            ErrorData::internal_error(format!("the messages of the tool {} are not valid: {error}", tool.name), None)
        })?,
        None => vec![PromptMessage::new_text(Role::User, model_text(&output))],
    };
    Ok(GetPromptResult::new(messages).with_description(prompt.description).into())
}

/// An error if there is no prompt with this name.
pub(crate) async fn check_name(principal: &dyn Principal, name: &str) -> Result<(), ErrorData> {
    named(principal, name).await.map(|_| ())
}

async fn named(principal: &dyn Principal, name: &str) -> Result<Source, ErrorData> {
    let found = all(principal).await?.remove(name);
    found
        .ok_or_else(|| ErrorData::invalid_params(format!("there is no prompt {name:?}"), Some(json!({"prompt": name}))))
}

/// By name. A guide has precedence over a published prompt.
async fn all(principal: &dyn Principal) -> Result<BTreeMap<String, Source>, ErrorData> {
    let store = &**principal.store();
    let published: Vec<PublishedPrompt> = published::all(store).await?;
    let guides = Guide::all(store).await.map_err(errors::of_store)?;
    let mut found: BTreeMap<String, Source> = BTreeMap::new();
    found.extend(published.into_iter().map(|prompt| (prompt.name.clone(), Source::Tool(prompt))));
    found.extend(guides.into_iter().map(|guide| (guide.name.clone(), Source::Guide(guide))));
    Ok(found)
}

impl Source {
    fn described(self) -> Prompt {
        match self {
            Self::Guide(guide) => {
                let summary = if guide.summary.is_empty() { guide.title.clone() } else { guide.summary };
                Prompt::new(guide.name, Some(summary), None).with_title(guide.title)
            }
            Self::Tool(prompt) => {
                let arguments = (!prompt.arguments.is_empty()).then_some(prompt.arguments);
                let shown = Prompt::new(prompt.name, Some(prompt.description), arguments);
                match prompt.title {
                    Some(title) => shown.with_title(title),
                    None => shown,
                }
            }
        }
    }
}
