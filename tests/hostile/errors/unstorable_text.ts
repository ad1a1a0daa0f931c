/**
 * Text that no database keeps, in every place of an error that is written down: half characters, U+0000, odd directions.
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
