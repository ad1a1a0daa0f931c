/**
 * A stranger's tool that lists the metadata service in its permissions: it may not even be offered.
 *
 * status: refused
 * rule: net-host
 * permissions: {"net": ["169.254.169.254", "metadata.internal"]}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://169.254.169.254/")).status;
}
