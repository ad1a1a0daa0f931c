//! Rules for migrations on tables that are in use, checked on the text, so that a mistake is found
//! before it reaches a large table.
//!
//! A table that the same file creates is empty and unused, so everything is allowed on it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Earlier migrations are the initial schema.
const FIRST: i64 = 15;
const ONE_AT_A_TIME: &str = "-- no-transaction";

#[test]
fn no_migration_locks_or_rewrites_a_live_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../migrations");
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let number: i64 = name.split_once('_').unwrap().0.parse().unwrap();
        let old = files.insert(number, (name, std::fs::read_to_string(path).unwrap()));
        assert!(old.is_none(), "two migrations have the number {number}");
    }
    let found: Vec<String> = files
        .range(FIRST..)
        .flat_map(|(_, (name, text))| findings(text).into_iter().map(move |finding| format!("{name}: {finding}")))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn finds_statements_that_lock_or_rewrite() {
    for bad in [
        "CREATE INDEX i ON calls (tool)",
        "CREATE UNIQUE INDEX IF NOT EXISTS i ON ONLY public.calls (tool)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON calls (tool)",
        "-- no-transaction\nCREATE INDEX CONCURRENTLY i ON calls (tool)",
        "-- no-transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS i ON calls (tool); SELECT 1",
        "-- no-transaction\nCREATE INDEX i ON calls (tool)",
        "DROP INDEX calls_waiting",
        "ALTER TABLE calls ADD COLUMN a timestamptz DEFAULT clock_timestamp()",
        "ALTER TABLE calls ADD COLUMN a uuid NOT NULL DEFAULT gen_random_uuid()",
        "ALTER TABLE calls ADD COLUMN a int NOT NULL",
        "ALTER TABLE calls ADD a text GENERATED ALWAYS AS (tool) STORED",
        "ALTER TABLE calls ADD COLUMN a bigserial",
        "ALTER TABLE calls ADD COLUMN a int REFERENCES tenants",
        "ALTER TABLE calls ADD COLUMN a int CHECK (a > 0)",
        "ALTER TABLE calls ADD COLUMN a int UNIQUE",
        "ALTER TABLE calls ALTER COLUMN tool TYPE varchar(10)",
        "ALTER TABLE calls ALTER tool SET DATA TYPE varchar(10)",
        "ALTER TABLE calls ALTER COLUMN tool SET NOT NULL",
        "ALTER TABLE calls ADD CONSTRAINT c CHECK (attempt >= 0)",
        "ALTER TABLE calls ADD CONSTRAINT c FOREIGN KEY (owner_id) REFERENCES tenants",
        "ALTER TABLE calls ADD UNIQUE (tool)",
        "ALTER TABLE calls ADD COLUMN a int, ADD CONSTRAINT c CHECK (a > 0)",
        "ALTER TABLE calls ADD CONSTRAINT c CHECK (a > 0) NOT VALID; ALTER TABLE calls VALIDATE CONSTRAINT c",
        "ALTER TABLE calls RENAME COLUMN tool TO name",
        "ALTER TABLE calls SET UNLOGGED",
        "UPDATE calls SET tool = 'a'",
        "DELETE FROM events",
        "INSERT INTO t SELECT * FROM events",
        "WITH a AS (SELECT 1) UPDATE calls SET tool = 'a'",
        "DO $$ BEGIN UPDATE calls SET tool = 'a'; END $$",
        "TRUNCATE events",
        "DROP TABLE events",
        "LOCK TABLE calls",
        "VACUUM FULL calls",
        "CREATE TABLE t (a int); CREATE INDEX i ON calls (tool)",
    ] {
        assert!(!findings(bad).is_empty(), "{bad}");
    }
    for good in [
        "CREATE TABLE t (a int NOT NULL REFERENCES tenants); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1)",
        "CREATE TABLE IF NOT EXISTS public.t (a int); ALTER TABLE t ADD CHECK (a > 0); UPDATE t SET a = 2",
        "-- no-transaction\n-- Why; and how.\nCREATE INDEX CONCURRENTLY IF NOT EXISTS i ON calls (tool);\n",
        "-- no-transaction\nDROP INDEX CONCURRENTLY IF EXISTS i",
        "ALTER TABLE calls ADD COLUMN a int",
        "ALTER TABLE calls ADD COLUMN IF NOT EXISTS a text[] NOT NULL DEFAULT '{}', ADD COLUMN b boolean DEFAULT false",
        "ALTER TABLE calls ADD COLUMN a text DEFAULT 'one, two (three)'",
        "ALTER TABLE calls ADD CONSTRAINT c CHECK (attempt >= 0) NOT VALID",
        "ALTER TABLE calls VALIDATE CONSTRAINT c",
        "ALTER TABLE calls DROP CONSTRAINT c; CREATE POLICY p ON calls USING (true)",
        "ALTER TABLE calls SET (fillfactor = 70), ALTER COLUMN tool SET STATISTICS 100",
        "CREATE OR REPLACE FUNCTION f() RETURNS void LANGUAGE sql AS $$ UPDATE calls SET tool = ''; $$",
        "COMMENT ON TABLE calls IS 'UPDATE calls SET tool = 1; it''s a text'",
    ] {
        assert_eq!(findings(good), Vec::<String>::new(), "{good}");
    }
}

/// The problems of a migration with this text.
fn findings(text: &str) -> Vec<String> {
    let statements = statements(text);
    let fresh: HashSet<String> =
        statements.iter().filter(|one| one.words.starts_with(&["create", "table"])).map(|one| one.table(2)).collect();
    let is_alone = text.starts_with(ONE_AT_A_TIME);
    let mut found = Vec::new();
    if is_alone && statements.len() != 1 {
        found.push(format!("{ONE_AT_A_TIME} is for one statement; this has {}", statements.len()));
    }
    let adds: HashSet<&str> = statements
        .iter()
        .filter(|one| one.text.contains("not valid"))
        .flat_map(|one| one.words.iter())
        .copied()
        .collect();
    for statement in &statements {
        if let Some(why) = statement.fault(is_alone, &fresh, &adds) {
            found.push(format!("{why}: {}", statement.text));
        }
    }
    found
}

/// One statement in lower case, without comments. String literals and function bodies are replaced
/// by `''`.
struct Statement<'t> {
    text: &'t str,
    words: Vec<&'t str>,
}

impl Statement<'_> {
    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// The table named at this word, after optional keywords.
    fn table(&self, at: usize) -> String {
        let noise = ["if", "not", "exists", "only", "table", "into", "from", "on"];
        let name = self.words.iter().skip(at).find(|word| !noise.contains(word)).copied().unwrap_or_default();
        name.trim_start_matches("public.").trim_matches('"').to_owned()
    }

    fn fault(&self, is_alone: bool, fresh: &HashSet<String>, adds: &HashSet<&str>) -> Option<&'static str> {
        let is_index = self.has("index") && matches!(self.words.first(), Some(&("create" | "drop")));
        if self.has("concurrently") != is_alone {
            return Some("CONCURRENTLY and the first line -- no-transaction go together");
        }
        if is_alone {
            let is_repeatable = is_index && self.text.contains("concurrently if ");
            return (!is_repeatable)
                .then_some("a statement without a transaction must be [CREATE|DROP] INDEX CONCURRENTLY IF …");
        }
        match self.words.as_slice() {
            ["create", "index", ..] | ["create", "unique", "index", ..] => {
                let on = self.words.iter().position(|word| *word == "on").unwrap_or_default();
                (!fresh.contains(&self.table(on))).then_some("an index on an existing table blocks its writers")
            }
            ["drop", "index", ..] => Some("dropping an index blocks everyone: use DROP INDEX CONCURRENTLY"),
            ["alter", "table", ..] if !fresh.contains(&self.table(2)) => self.alteration(adds),
            ["update", ..] if !fresh.contains(&self.table(1)) => {
                Some("existing rows are changed in batches, by the program")
            }
            ["delete", ..] if !fresh.contains(&self.table(1)) => {
                Some("existing rows are deleted in batches, by the program")
            }
            ["insert", ..] if self.has("select") && self.has("from") => {
                Some("an existing table must not be copied in a migration")
            }
            ["with", ..] if ["update", "delete", "insert"].iter().any(|word| self.has(word)) => {
                Some("a migration must not change rows")
            }
            ["truncate" | "lock" | "vacuum" | "cluster" | "reindex" | "refresh", ..] | ["drop", "table", ..] => {
                Some("this locks out every other client")
            }
            _ => None,
        }
    }

    fn alteration(&self, adds: &HashSet<&str>) -> Option<&'static str> {
        actions(self.text).iter().find_map(|action| {
            let words: Vec<&str> = action.split_whitespace().collect();
            let is_constraint = |word: &str| {
                ["constraint", "check", "unique", "primary", "foreign", "exclude"]
                    .iter()
                    .any(|kind| word == *kind || word.starts_with(&format!("{kind}(")))
            };
            match words.as_slice() {
                ["add", word, ..] if is_constraint(word) => {
                    let is_light = action.contains("not valid") || action.contains("using index");
                    (!is_light).then_some(
                        "a constraint reads the whole table: use NOT VALID, and VALIDATE in a later migration",
                    )
                }
                ["add", rest @ ..] => {
                    if rest.iter().any(|word| {
                        word.contains("serial") || *word == "generated" || *word == "references" || is_constraint(word)
                    }) {
                        return Some("a new column can only be nullable or have a constant default");
                    }
                    match action.split_once(" default ") {
                        Some((_, value)) => {
                            let value = value.trim_start_matches("''");
                            let is_constant =
                                !value.contains('(') && !value.starts_with("current_") && !value.starts_with("local");
                            (!is_constant).then_some("a computed default rewrites the table")
                        }
                        None => {
                            action.contains("not null").then_some("a new column without a default cannot be NOT NULL")
                        }
                    }
                }
                ["alter", ..] if words.contains(&"type") => Some("another type rewrites the table"),
                ["alter", ..] if action.contains("set not null") => Some("SET NOT NULL reads the whole table"),
                ["validate", "constraint", name] => adds.contains(name).then_some(
                    "validating in the transaction that adds the constraint holds its lock: use a later migration",
                ),
                ["rename", ..] => Some("servers of the previous version use the old name"),
                ["set", "logged" | "unlogged" | "tablespace" | "access", ..] => Some("this rewrites the table"),
                _ => None,
            }
        })
    }
}

/// The actions of an ALTER TABLE: the parts between top-level commas.
fn actions(text: &str) -> Vec<String> {
    let mut words = text.split_whitespace().skip(2).peekable();
    while words.next_if(|word| ["if", "exists", "only"].contains(word)).is_some() {}
    let rest: Vec<&str> = words.skip(1).collect();
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in rest.join(" ").chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(c);
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

/// The statements of a text. Statements in a DO block count too, because they run at once.
fn statements(text: &str) -> Vec<Statement<'static>> {
    plain(text)
        .split(';')
        .map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|one| !one.is_empty())
        .map(|one| {
            let text: &'static str = one.leak();
            let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).collect();
            Statement { text, words }
        })
        .collect()
}

/// The text in lower case without comments. String literals are empty.
fn plain(text: &str) -> String {
    let (mut rest, mut plain) = (text, String::new());
    while !rest.is_empty() {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
        } else if let Some(quoted) = rest.strip_prefix('\'') {
            // A doubled quote closes one literal and opens the next, which has the same result.
            rest = quoted.find('\'').map_or("", |end| &quoted[end + 1..]);
            plain.push_str("''");
        } else if let Some(body) = rest.strip_prefix("$$") {
            let end = body.find("$$").unwrap_or(body.len());
            if plain.trim_end().ends_with("do") {
                plain.push(';');
                plain.push_str(&self::plain(&body[..end]).replace("begin ", "begin;"));
            } else {
                plain.push_str("''");
            }
            rest = body.get(end + 2..).unwrap_or_default();
        } else {
            let c = rest.chars().next().unwrap();
            plain.extend(c.to_lowercase());
            rest = &rest[c.len_utf8()..];
        }
    }
    plain
}
