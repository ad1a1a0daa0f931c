/**
 * Limits above all maxima in the tool's own definition: a thousand gigabytes for a year.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: limits
 * limits: {"timeout_ms": 31536000000, "memory_mb": 1000000, "cpu_percent": 10000}
 */
export async function execute(): Promise<number> {
  return 1;
}
