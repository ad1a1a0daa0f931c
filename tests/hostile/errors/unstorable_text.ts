/**
 * Text that a database cannot store, in every part of an error that is recorded: lone surrogates,
 * U+0000, direction marks.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: odd
 * never: \u0000
 */
export async function execute(): Promise<void> {
  const odd = "odd\u0000\ud800\udfff\u202e\u2028";
  console.error(odd);
  console.log({ [odd]: odd });
  const error = new Error(odd, { cause: new Error(odd) });
  error.name = odd;
  error.stack = odd;
  throw error;
}
