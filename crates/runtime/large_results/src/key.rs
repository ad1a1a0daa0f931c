//! The address of an entry: a namespace, which is a path, and a key in it.

use rcrt_breadcrumb::ToolRequest;
use sha2::{Digest, Sha256};

/// The maximum length of an entry's path, in characters.
pub const MAX_PATH_CHARS: usize = 500;
/// The maximum number of names in a namespace.
pub const MAX_DEPTH: usize = 16;
/// The maximum length of a session's name in a path, in characters. It leaves room for keys.
const MAX_SESSION_CHARS: usize = 200;
/// The maximum length of a tag in the store, in characters.
const MAX_TAG_CHARS: usize = 200;

/// A path of names separated by `/`, such as `session/s1` or `project/alpha`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(String);

impl Namespace {
    /// Parses a path. A `/` at its start or end is ignored. The error says what is accepted.
    pub fn read(text: &str) -> Result<Self, String> {
        let path = text.trim().trim_matches('/');
        if path.is_empty() {
            return Err("is empty; write a path such as project/alpha".into());
        }
        check(path)?;
        if path.split('/').count() > MAX_DEPTH {
            return Err(format!("has more than {MAX_DEPTH} names separated by /"));
        }
        Ok(Self(path.to_owned()))
    }

    /// The namespace of keys without `/`: `session/<session>`, else `agent/<agent id>`.
    pub fn home(request: &ToolRequest) -> Self {
        match (&request.session, request.agent_id) {
            (Some(session), _) => Self::session(session),
            (None, Some(agent)) => Self(format!("agent/{agent}")),
            (None, None) => Self("agent/unknown".into()),
        }
    }

    /// `session/<session>`. The session is always one name of the path, so that no session is
    /// inside another: `/` becomes `%2F`, `%` becomes `%25`, and a leading `~` becomes `%7E`. A
    /// session that is too long or still not a valid name is replaced by its hash, which starts
    /// with `~`.
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

    /// The namespace itself and its ancestors, the outermost last.
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
    /// A key with `/` is absolute: everything before the last `/` is the namespace. Any other key
    /// is in `home`.
    pub fn read(text: &str, home: &Namespace) -> Result<Self, String> {
        let path = text.trim().trim_start_matches('/');
        if path.is_empty() {
            return Err("is empty; write a name such as plan, or a path such as project/alpha/plan".into());
        }
        if path.ends_with('/') {
            return Err("ends with /, so it is a namespace; name an entry in it".into());
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

    /// A key that the runtime chose. `name` has no `/`.
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

    /// The tag that identifies the entry.
    pub(crate) fn tag(&self) -> String {
        tag("memory:", &self.path())
    }
}

impl std::fmt::Display for EntryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A tag that ends with the text, or with its hash if the tag would be too long. The two cannot
/// collide: a path that starts with `#` has a name after it, and a hash has no `/`.
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
            return Err("has . or .. as a name; write the full path".into());
        }
        if name.chars().any(char::is_control) {
            return Err("has a control character, such as a line break".into());
        }
    }
    Ok(())
}

fn hash(text: &str) -> String {
    rcrt_breadcrumb::hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_a_slash_are_absolute_and_others_are_in_the_home() {
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
    fn each_session_has_its_own_namespace() {
        let names = ["s1", "chat/7", "a//b", "..", "/x", "x/", " x", "x\ny", "~", "chat%2F7"].map(Namespace::session);
        let mut different = names.to_vec();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), names.len());
        assert_eq!(names[1].as_str(), "session/chat%2F7");
        let hashed = Namespace::session("..");
        let same = hashed.as_str().strip_prefix("session/").map(Namespace::session);
        assert_ne!(same, Some(hashed), "a session cannot have the name of another session's hash");
        assert!(names.iter().all(|name| name.with_ancestors().count() == 2), "no session is inside another");
        assert!(names.iter().all(|name| EntryKey::read(&format!("{name}/k"), name).is_ok()));
    }

    #[test]
    fn tags_fit_the_store() {
        let home = Namespace::session("s");
        let long = EntryKey::read(&format!("n/{}", "k".repeat(300)), &home).unwrap();
        let other = EntryKey::read(&format!("n/{}", "k".repeat(301)), &home).unwrap();
        assert!(long.tag().chars().count() <= 200);
        assert_ne!(long.tag(), other.tag());
        assert_eq!(EntryKey::read("k", &home).unwrap().tag(), "memory:session/s/k");
    }
}
