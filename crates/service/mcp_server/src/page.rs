//! Pages of lists. A cursor is the key of the last item, so it stays valid while the list changes.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rmcp::ErrorData;
use rmcp::model::PaginatedRequestParams;

/// Items of a list in one result.
const PAGE: usize = 200;
/// The longest cursor that is read.
const MAX_CURSOR: usize = 4096;
/// How long a client may use a list without asking again, in milliseconds. Changes are notified.
pub(crate) const TTL_MS: u64 = 30_000;

/// The page that the request asks for, of items that are sorted by `key`. Also the cursor of the
/// next page.
pub(crate) fn page<T>(
    items: Vec<T>,
    key: impl Fn(&T) -> &str,
    request: Option<PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let after = request.and_then(|request| request.cursor).map(|cursor| read(&cursor)).transpose()?;
    let is_after = |item: &T| after.as_deref().is_none_or(|after| key(item) > after);
    let mut rest = items.into_iter().filter(is_after);
    let page: Vec<T> = rest.by_ref().take(PAGE).collect();
    let next = rest.next().and(page.last()).map(|last| URL_SAFE_NO_PAD.encode(key(last)));
    Ok((page, next))
}

fn read(cursor: &str) -> Result<String, ErrorData> {
    let decoded = (cursor.len() <= MAX_CURSOR).then(|| URL_SAFE_NO_PAD.decode(cursor).ok()).flatten();
    decoded
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| ErrorData::invalid_params("cursor must be the nextCursor of the last page", None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_a_list_once_and_in_order() {
        let items: Vec<String> = (0..450).map(|number| format!("{number:04}")).collect();
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let request = PaginatedRequestParams::default().with_cursor(cursor);
            let (some, next) = page(items.clone(), String::as_str, Some(request)).unwrap();
            seen.extend(some);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, items);
        let wrong = PaginatedRequestParams::default().with_cursor(Some("%%".into()));
        assert!(page(items, String::as_str, Some(wrong)).unwrap_err().message.contains("cursor"));
    }
}
