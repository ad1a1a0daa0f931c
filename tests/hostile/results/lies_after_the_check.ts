/**
 * A getter that gives a number when it is read first and text ever after: a check must see what is sent and nothing else.
 *
 * status: error
 * error_code: InvalidOutput
 * message: output_schema
 * output_schema: {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
 */
export async function execute(): Promise<unknown> {
  let reads = 0;
  return {
    get n() {
      return reads++ === 0 ? 1 : "text";
    },
  };
}
