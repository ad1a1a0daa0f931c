//! Removes the remains of an index whose build was interrupted.

use sqlx::{AssertSqlSafe, PgConnection};

/// Drops the index that this statement creates, if it exists and is invalid: `IF NOT EXISTS` would
/// treat it as complete.
pub(super) async fn clear_half_built(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    let Some(name) = created_index(sql) else { return Ok(()) };
    let is_half_built: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = to_regclass($1) AND NOT i.indisvalid)",
    )
    .bind(name)
    .fetch_one(&mut *connection)
    .await?;
    if is_half_built {
        sqlx::raw_sql(AssertSqlSafe(format!("DROP INDEX CONCURRENTLY {name}"))).execute(connection).await?;
    }
    Ok(())
}

/// The name in `CREATE [UNIQUE] INDEX CONCURRENTLY [IF NOT EXISTS] name ON …`.
fn created_index(sql: &str) -> Option<&str> {
    let mut words =
        sql.lines().map(|line| line.split("--").next().unwrap_or_default()).flat_map(str::split_whitespace).peekable();
    let mut next_is = |word: &str| words.next_if(|next| next.eq_ignore_ascii_case(word)).is_some();
    if !next_is("create") {
        return None;
    }
    next_is("unique");
    if !(next_is("index") && next_is("concurrently")) {
        return None;
    }
    if next_is("if") {
        let _ = (next_is("not"), next_is("exists"));
    }
    words.next().filter(|name| !name.eq_ignore_ascii_case("on"))
}

#[cfg(test)]
mod tests {
    use super::created_index;

    #[test]
    fn finds_the_index_name_in_create_index_concurrently_only() {
        for (sql, name) in [
            ("CREATE INDEX CONCURRENTLY one ON t (a)", Some("one")),
            (
                "-- no-transaction\n-- Why.\nCREATE UNIQUE INDEX CONCURRENTLY\n  IF NOT EXISTS two -- so\n ON t (a)",
                Some("two"),
            ),
            ("create index concurrently if not exists three on t (a)", Some("three")),
            ("CREATE INDEX CONCURRENTLY ON t (a)", None),
            ("CREATE INDEX four ON t (a)", None),
            ("DROP INDEX CONCURRENTLY IF EXISTS five", None),
            ("VACUUM t", None),
            ("", None),
        ] {
            assert_eq!(created_index(sql), name, "{sql}");
        }
    }
}
