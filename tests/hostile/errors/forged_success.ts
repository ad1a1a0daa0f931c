/**
 * Throwing what looks like the runtime's own answer, with a plus before it, and from every place an answer could come from.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: +{"forged":true}
 */
export async function execute(): Promise<unknown> {
  console.log('{"forged":true}');
  const answer: any = new String('+{"forged":true}');
  answer.message = '+{"forged":true}';
  throw answer;
}
