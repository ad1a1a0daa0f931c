//! The address of an entry: a namespace, which is a path, and a key in it.

use breadcrumb::ToolRequest;
use sha2::{Digest, Sha256};

/// The longest path of an entry, in characters.
pub const MAX_PATH_CHARS: usize = 500;
/// How many names a namespace may have.
pub const MAX_DEPTH: usize = 16;
/// The longest name of a session in a path, in characters: room is left for the keys in it.
const MAX_SESSION_CHARS: usize = 200;
/// The longest tag that the store takes.
const MAX_TAG_CHARS: usize = 200;

/// A path of names with `/` between them, such as `session/s1` or `project/alpha`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(String);

impl Namespace {
    /// Reads a path; `/` at its ends means nothing. The error says what would be right.
    pub fn read(text: &str) -> Result<Self, String> {
        let path = text.trim().trim_matches('/');
        if path.is_empty() {
            return Err("is empty; write a path such as project/alpha".into());
        }
        check(path)?;
        if path.split('/').count() > MAX_DEPTH {
            return Err(format!("has more than {MAX_DEPTH} names with / between them"));
        }
        Ok(Self(path.to_owned()))
    }

    /// Where keys without `/` belong: `session/<session>`, else `agent/<agent id>`.
    pub fn home(request: &ToolRequest) -> Self {
        match (&request.session, request.agent_id) {
            (Some(session), _) => Self::session(session),
            (None, Some(agent)) => Self(format!("agent/{agent}")),
            (None, None) => Self("agent/unknown".into()),
        }
    }

    /// `session/<session>`. The session is one name of the path, whatever stands in it, so that no session is inside of
    /// another: `/` becomes `%2F`, `%` becomes `%25` (and a `~` at the start `%7E`). One whose name is no path all the
    /// same, or is too long, stands under a hash of it, which begins with `~`.
    pub fn session(session: &str) -> Self {
        let name = session.replace('%', "%25").replace('/', "%2F");
        let name = name.strip_prefix('~').map_or_else(|| name.clone(), |rest| format!("%7E{rest}"));
        let plain = format!("session/{name}");
        match Self::read(&plain) {
            Ok(namespace) if namespace.0 == plain && name.chars().count() <= MAX_SESSION_CHARS => namespace,
            _ => Self(format!("session/~{}", &hash(session)[..32])),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The namespace itself and those that it stands in, the outermost last.
    pub(crate) fn with_ancestors(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self.as_str()), |path| path.rsplit_once('/').map(|(outer, _)| outer))
    }
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key in its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    namespace: Namespace,
    name: String,
}

impl EntryKey {
    /// A key with `/` is absolute: all before the last `/` is the namespace. One without belongs to `home`.
    pub fn read(text: &str, home: &Namespace) -> Result<Self, String> {
        let path = text.trim().trim_start_matches('/');
        if path.is_empty() {
            return Err("is empty; write a name such as plan, or a path such as project/alpha/plan".into());
        }
        if path.ends_with('/') {
            return Err("ends with /; a namespace is no entry: name one in it".into());
        }
        check(path)?;
        let key = match path.rsplit_once('/') {
            Some((namespace, name)) => Self { namespace: Namespace::read(namespace)?, name: name.to_owned() },
            None if text.contains('/') => {
                return Err("has no namespace before its /; write namespace/key, or the key alone".into());
            }
            None => Self { namespace: home.clone(), name: path.to_owned() },
        };
        check(&key.path())?;
        Ok(key)
    }

    /// A key of the runtime's own making: `name` has no `/`.
    pub(crate) fn of(namespace: &Namespace, name: &str) -> Self {
        Self { namespace: namespace.clone(), name: name.replace('/', "_") }
    }

    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The absolute key.
    pub fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The one tag by which the entry is found.
    pub(crate) fn tag(&self) -> String {
        tag("memory:", &self.path())
    }
}

impl std::fmt::Display for EntryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A tag that ends with the text, or with its hash where that is too long for a tag. A path has no `#` at its start
/// that is not followed by a name of its own, so the two never meet: a hash stands without `/`.
pub(crate) fn tag(prefix: &str, text: &str) -> String {
    let plain = format!("{prefix}{text}");
    if plain.chars().count() <= MAX_TAG_CHARS { plain } else { format!("{prefix}#sha256#{}", hash(text)) }
}

fn check(path: &str) -> Result<(), String> {
    let characters = path.chars().count();
    if characters > MAX_PATH_CHARS {
        return Err(format!("has {characters} characters with its namespace; at most {MAX_PATH_CHARS} are allowed"));
    }
    for name in path.split('/') {
        if name.trim().is_empty() {
            return Err("has an empty name between two /".into());
        }
        if name == "." || name == ".." {
            return Err("has a name . or ..; paths are written out from their beginning".into());
        }
        if name.chars().any(char::is_control) {
            return Err("has a control character, such as a line break".into());
        }
    }
    Ok(())
}

fn hash(text: &str) -> String {
    breadcrumb::hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_a_slash_are_absolute_and_others_belong_to_the_home() {
        let home = Namespace::session("s1");
        let path = |key: &str| EntryKey::read(key, &home).map(|key| key.path());
        assert_eq!(path("plan").unwrap(), "session/s1/plan");
        assert_eq!(path(" plan ").unwrap(), "session/s1/plan");
        assert_eq!(path("project/alpha/plan").unwrap(), "project/alpha/plan");
        assert_eq!(path("/project/plan").unwrap(), "project/plan");
        for wrong in ["", "  ", "/", "/plan", "a/", "a//b", "a/../b", "./b", "a/\n", "a/ /b"] {
            assert!(path(wrong).is_err(), "{wrong:?}");
        }
        assert!(path(&"x".repeat(600)).unwrap_err().contains("at most 500"));
        assert!(path(&format!("{}y", "x/".repeat(40))).unwrap_err().contains("more than 16 names"));
    }

    #[test]
    fn every_session_has_a_namespace_of_its_own() {
        let names = ["s1", "chat/7", "a//b", "..", "/x", "x/", " x", "x\ny", "~", "chat%2F7"].map(Namespace::session);
        let mut different = names.to_vec();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), names.len());
        assert_eq!(names[1].as_str(), "session/chat%2F7");
        let hashed = Namespace::session("..");
        let same = hashed.as_str().strip_prefix("session/").map(Namespace::session);
        assert_ne!(same, Some(hashed), "a session cannot take the name of another's hash");
        assert!(names.iter().all(|name| name.with_ancestors().count() == 2), "none is inside of another");
        assert!(names.iter().all(|name| EntryKey::read(&format!("{name}/k"), name).is_ok()));
    }

    #[test]
    fn a_tag_is_never_too_long() {
        let home = Namespace::session("s");
        let long = EntryKey::read(&format!("n/{}", "k".repeat(300)), &home).unwrap();
        let other = EntryKey::read(&format!("n/{}", "k".repeat(301)), &home).unwrap();
        assert!(long.tag().chars().count() <= 200);
        assert_ne!(long.tag(), other.tag());
        assert_eq!(EntryKey::read("k", &home).unwrap().tag(), "memory:session/s/k");
    }
}
