//! The packages that a script asks for. Only names with versions are accepted: with a URL, a path
//! or an option of pip, untrusted input would control the installer, in the one step that has the
//! network.

use std::collections::BTreeSet;

use rcrt_breadcrumb::ToolFailure;
use sha2::{Digest, Sha256};

use crate::arguments::wrong;

const FIELD: &str = "pip_packages";
const MOST: usize = 30;
const LONGEST: usize = 200;
const OPERATORS: [&str; 8] = ["===", "==", ">=", "<=", "~=", "!=", ">", "<"];

/// A sorted set of requirements of packages, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSet(BTreeSet<String>);

impl PackageSet {
    /// `None` for no packages.
    pub fn read(texts: &[String]) -> Result<Option<Self>, ToolFailure> {
        if texts.len() > MOST {
            return Err(wrong(FIELD, format!("lists {} packages; the maximum is {MOST}", texts.len())));
        }
        let read: Result<BTreeSet<String>, ToolFailure> = texts
            .iter()
            .map(|text| {
                requirement(text).ok_or_else(|| {
                    let right =
                        "write a name, optionally with extras and versions, such as numpy, requests[socks] or pandas>=2,<3";
                    wrong(FIELD, format!("{text:?} is not a package; {right}"))
                })
            })
            .collect();
        Ok(Some(Self(read?)).filter(|set| !set.0.is_empty()))
    }

    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }

    /// The unique name of this set with this interpreter.
    pub fn key(&self, interpreter: &str) -> String {
        let mut hash = Sha256::new();
        for part in std::iter::once(interpreter).chain(self.names()) {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let bytes = hash.finalize();
        format!("{bytes:x}")
    }
}

/// `name[extra,extra]==1.0,<2` in canonical form; `None` for anything else.
fn requirement(text: &str) -> Option<String> {
    let text = joined(text)?;
    if text.len() > LONGEST {
        return None;
    }
    let end = text.find(|c: char| !is_of_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let (extras, versions) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let name = normal(name)?;
    let mut extras: Vec<String> =
        extras.split(',').filter(|extra| !extra.is_empty()).map(normal).collect::<Option<_>>()?;
    extras.sort();
    let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
    if !versions.is_empty() && !versions.split(',').all(is_version) {
        return None;
    }
    Some(format!("{name}{extras}{versions}"))
}

/// Removes white space, which is allowed around operators and commas, but not within names and
/// versions.
fn joined(text: &str) -> Option<String> {
    let mut joined = String::new();
    for word in text.split_ascii_whitespace() {
        if joined.ends_with(is_of_name) && word.starts_with(is_of_name) {
            return None;
        }
        joined.push_str(word);
    }
    Some(joined)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// The canonical form of a name: lower case, with `-` for each run of `-`, `_` and `.`.
fn normal(name: &str) -> Option<String> {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !name.chars().all(is_of_name) || !is_edge(name.chars().next()) || !is_edge(name.chars().next_back()) {
        return None;
    }
    let parts = name.split(['.', '_', '-']).filter(|part| !part.is_empty());
    Some(parts.collect::<Vec<_>>().join("-").to_ascii_lowercase())
}

fn is_version(text: &str) -> bool {
    let Some(version) = OPERATORS.iter().find_map(|operator| text.strip_prefix(operator)) else { return false };
    !version.is_empty()
        && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '*' | '+' | '!' | '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_have_a_canonical_form() {
        for (text, spelling) in [
            ("numpy", "numpy"),
            ("  Ruamel.Yaml ", "ruamel-yaml"),
            ("typing__extensions", "typing-extensions"),
            ("requests[socks, Use_Chardet] >= 2.0, < 3", "requests[socks,use-chardet]>=2.0,<3"),
            ("torch==2.1.0+cpu", "torch==2.1.0+cpu"),
            ("a~=1.*", "a~=1.*"),
        ] {
            assert_eq!(requirement(text).as_deref(), Some(spelling), "{text}");
        }
    }

    #[test]
    fn other_requirements_are_refused() {
        for text in [
            "",
            "-r/etc/passwd",
            "--index-url=http://x",
            "-e.",
            ".",
            "./wheel.whl",
            "/tmp/x.whl",
            "git+https://example.com/x",
            "https://example.com/x.whl",
            "x@https://example.com/x.whl",
            "x@file:///etc",
            "x;python_version>'3'",
            "x==",
            "x=1",
            "x>=1 -r y",
            "x[",
            "x[a]b",
            "x[-]",
            "-x",
            "x-",
            "näme",
            "x\0",
            "x$(id)",
        ] {
            assert_eq!(requirement(text), None, "{text}");
        }
        assert!(PackageSet::read(&vec!["a".to_owned(); 31]).is_err());
        assert_eq!(PackageSet::read(&[]).unwrap(), None);
    }

    #[test]
    fn set_key_depends_on_its_content() {
        let set = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            PackageSet::read(&names).unwrap().unwrap()
        };
        assert_eq!(set(&["b", "A"]).key("3.11"), set(&["a", "B", "a"]).key("3.11"));
        assert_ne!(set(&["a"]).key("3.11"), set(&["a"]).key("3.12"));
        assert_ne!(set(&["a"]).key("3.11"), set(&["a", "b"]).key("3.11"));
    }

    proptest::proptest! {
        #[test]
        fn parsed_requirement_is_never_an_option_or_a_url(text in "[-a-z@:/.;\\[\\]<>=!~, ]{0,30}") {
            if let Some(spelling) = requirement(&text) {
                assert!(spelling.starts_with(|c: char| c.is_ascii_alphanumeric()), "{spelling}");
                assert!(!spelling.contains(['@', '/', ':', ';', ' ']), "{spelling}");
                assert_eq!(requirement(&spelling).as_deref(), Some(spelling.as_str()));
            }
        }
    }
}
