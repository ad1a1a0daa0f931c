/**
 * A tool that asks for files, programs, native libraries and a fine clock in its permissions, and is a stranger's.
 *
 * status: refused
 * rule: forbidden-permission
 * permissions: {"read": ["/etc"], "write": true, "run": ["sh"], "ffi": true, "hrtime": true}
 */
export async function execute(): Promise<number> {
  return performance.now();
}
