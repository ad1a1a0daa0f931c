/**
 * An untrusted author's tool lists the metadata service in its permissions. It must not even be
 * offered.
 *
 * status: refused
 * rule: net-host
 * permissions: {"net": ["169.254.169.254", "metadata.internal"]}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://169.254.169.254/")).status;
}
