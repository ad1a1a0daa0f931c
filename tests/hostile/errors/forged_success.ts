/**
 * Throws a value that looks like the runtime's own response, with a plus in front, from every
 * place from which a response could come.
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
