/**
 * The schema requires that a hundred thousand objects are unique. Comparing each pair would take
 * five billion comparisons.
 *
 * status: error
 * error_code: InvalidOutput
 * message: output_schema
 * output_schema: {"type": "array", "uniqueItems": true}
 * limits: {"memory_mb": 256}
 */
export async function execute(): Promise<unknown> {
  const items = Array.from({ length: 100_000 }, (_, i) => ({ id: [i] }));
  return [...items, { id: [99_999] }];
}
