/**
 * Queries that are code for some system: SQL in tags, paths that walk everything, patterns,
 * unbounded numbers.
 *
 * status: success
 * output: {"answered": 0, "refused": true}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const sql = "'; DROP TABLE breadcrumbs; --";
  let answered = 0;
  let refused = 0;
  for (const query of [
    { tag: sql },
    { schema_name: sql },
    { all_tags: [sql, "\\", "%", "_"] },
    { tag: "{{tool}}", context_match: [{ path: `$.a${sql}`, op: "eq", value: 1 }] },
    { tag: "{{tool}}", context_match: [{ path: "$..*", op: "exists", value: 1 }] },
    { tag: "{{tool}}", context_match: [{ path: "$.a", op: sql, value: 1 }] },
    { tag: "{{tool}}", context_match: [{ path: "$.a ? (@ like_regex \"^(a+)+$\")", op: "eq", value: "a" }] },
    { limit: 1e9 },
    { offset: -1 },
    { limit: "1; DELETE" },
    { where: sql },
  ]) {
    try {
      answered += (await context.api.searchBreadcrumbs(query)).length;
    } catch (error) {
      if (/syntax|postgres|sql|relation|column/i.test((error as Error).message.replaceAll(sql, ""))) throw error;
      refused += 1;
    }
  }
  return { answered, refused: refused >= 5 };
}
