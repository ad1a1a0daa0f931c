//! A URL with `{param}` in its path and query. No argument can change the host, the port or the
//! number of path segments.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use url::Url;

use rcrt_breadcrumb::Host;

/// Everything except RFC 3986's unreserved characters.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Param(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<Piece>,
    host: Host,
    port: u16,
    segments: usize,
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, String> {
        let pieces = pieces(text)?;
        // Parse with a dummy value for each parameter to see where the parameters are.
        let example = filled(&pieces, |_| Ok::<_, String>("0".to_owned()))?;
        let url = Url::parse(&example).map_err(|error| format!("{text:?} is not an absolute URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("the scheme is {:?}; it must be http or https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not contain a user name or password; use auth".into());
        }
        if url.fragment().is_some() {
            return Err("must not have a fragment (#…)".into());
        }
        let after_scheme = text.find("://").map_or(0, |at| at + 3);
        let authority_end = text[after_scheme..].find(['/', '?', '\\']).map_or(text.len(), |at| after_scheme + at);
        if text[..authority_end].contains('{') {
            return Err("a {param} is allowed in the path and the query, not in the scheme, host or port".into());
        }
        let host = Host::of(&url).ok_or("has no host")?;
        let port = url.port_or_known_default().unwrap_or_default();
        Ok(Self { pieces, host, port, segments: segments(&url) })
    }

    /// The only target of the exchange.
    pub fn host(&self) -> (&Host, u16) {
        (&self.host, self.port)
    }

    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// How many segments the path of every filled URL has.
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// The URL with its parameters filled in. They are removed from the arguments. The error names
    /// the argument.
    pub fn fill(&self, arguments: &mut Map<String, Value>) -> Result<Url, String> {
        let text = filled(&self.pieces, |name| {
            let value = match arguments.get(name) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                Some(Value::Bool(truth)) => truth.to_string(),
                None | Some(Value::Null) => return Err(format!("{name}: is required by the tool's URL")),
                Some(_) => {
                    return Err(format!(
                        "{name}: must be a string, a number or a boolean, because it is part of the URL"
                    ));
                }
            };
            Ok(utf8_percent_encode(&value, ENCODED).to_string())
        })?;
        for piece in &self.pieces {
            if let Piece::Param(name) = piece {
                // `remove` would change the order of the remaining arguments.
                arguments.shift_remove(name);
            }
        }
        let url = Url::parse(&text).map_err(|error| format!("the arguments do not form a valid URL: {error}"))?;
        let same_target = Host::of(&url).as_ref() == Some(&self.host)
            && url.port_or_known_default() == Some(self.port)
            && segments(&url) == self.segments;
        // `.` and `..` would leave their segment. An empty value keeps the number of segments and
        // is allowed.
        if same_target { Ok(url) } else { Err("an argument must not be \".\" or \"..\" in the URL's path".into()) }
    }
}

fn segments(url: &Url) -> usize {
    url.path_segments().map_or(0, Iterator::count)
}

fn filled<E>(pieces: &[Piece], value: impl Fn(&str) -> Result<String, E>) -> Result<String, E> {
    pieces.iter().try_fold(String::new(), |mut text, piece| {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Param(name) => text.push_str(&value(name)?),
        }
        Ok(text)
    })
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(open);
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        let inner = after.strip_prefix('{').ok_or_else(|| format!("{text:?} has a }} without a {{"))?;
        let (name, after) = inner.split_once('}').ok_or_else(|| format!("{text:?} has a {{ without a }}"))?;
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if !is_name {
            return Err(format!("{{{name}}} is not a valid parameter; a name has letters, digits, _, - and ."));
        }
        pieces.push(Piece::Param(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fill(template: &str, arguments: Value) -> Result<String, String> {
        let Value::Object(mut arguments) = arguments else { panic!("arguments are an object") };
        Template::parse(template)?.fill(&mut arguments).map(Into::into)
    }

    #[test]
    fn parameters_are_percent_encoded() {
        let url = fill("https://api.test/users/{id}?q={q}", json!({"id": "a/b?c", "q": "x&y=z #1"})).unwrap();
        assert_eq!(url, "https://api.test/users/a%2Fb%3Fc?q=x%26y%3Dz%20%231");
    }

    #[test]
    fn missing_parameter_is_named() {
        assert_eq!(fill("https://api.test/{id}", json!({})).unwrap_err(), "id: is required by the tool's URL");
        assert!(fill("https://api.test/{id}", json!({"id": [1]})).unwrap_err().starts_with("id: must be"));
    }

    #[test]
    fn templates_with_parameters_in_the_authority_are_refused() {
        for template in [
            "https://{host}/x",
            "https://api.{zone}.test/",
            "https://api.test:{port}/",
            "{scheme}://api.test/",
            "https://{user}@api.test/",
            "https://u:p@api.test/",
            "ftp://api.test/",
            "/relative/{id}",
            "https://api.test/{",
            "https://api.test/{}",
            "https://api.test/}",
            "https://api.test/#{id}",
        ] {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }

    proptest! {
        #[test]
        fn arguments_stay_in_their_segment(id in ".*", q in ".*") {
            let template = Template::parse("https://api.test:8443/a/{id}/b?q={q}&r=1").unwrap();
            let mut arguments = Map::new();
            arguments.insert("id".into(), id.clone().into());
            arguments.insert("q".into(), q.clone().into());
            match template.fill(&mut arguments) {
                Err(_) => prop_assert!(id == "." || id == ".."),
                Ok(url) => {
                    prop_assert_eq!(url.host_str(), Some("api.test"));
                    prop_assert_eq!(url.port(), Some(8443));
                    let path: Vec<&str> = url.path_segments().unwrap().collect();
                    prop_assert_eq!((path.len(), path[0], path[2]), (3, "a", "b"));
                    let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
                    prop_assert_eq!(query, vec![("q".to_owned(), q), ("r".to_owned(), "1".to_owned())]);
                    prop_assert_eq!(url.fragment(), None);
                }
            }
        }
    }
}
