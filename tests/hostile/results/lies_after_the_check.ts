/**
 * A getter that returns a number in the first read and text afterwards. A check must see exactly
 * what is sent.
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
