/**
 * A request that a call writes names a position in another trace, or an invalid one. It gets the
 * call's own.
 *
 * status: success
 * permissions: {"tools": true}
 * request: {"context": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "session": "mine"}}
 * output: ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
 *   "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
 *   "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "mine"]
 */
export async function execute(_input: unknown, context: any): Promise<unknown[]> {
  const seen: unknown[] = [];
  let last;
  for (const forged of ["00-11111111111111111111111111111111-2222222222222222-01", "\n\u0000-\u00fc", undefined]) {
    const traceparent = forged === undefined ? {} : { traceparent: forged };
    const { id } = await context.api.createBreadcrumb({
      title: "t", tags: ["tool:request"], schema_name: "tool.request.v1", context: { tool: "nobody-has-this", ...traceparent },
    });
    last = (await context.api.getBreadcrumb(id)).context;
    seen.push(last.traceparent);
  }
  return [...seen, last.session];
}
