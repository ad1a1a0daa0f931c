/**
 * An untrusted author's tool that requests files, programs, native libraries and a fine clock in
 * its permissions.
 *
 * status: refused
 * rule: forbidden-permission
 * permissions: {"read": ["/etc"], "write": true, "run": ["sh"], "ffi": true, "hrtime": true}
 */
export async function execute(): Promise<number> {
  return performance.now();
}
