// {{description}}
//
// A key for the API is named in required_secrets and used here as context.secrets.NAME, for example in the header
// `authorization: Bearer ${context.secrets.NAME}`: a handle, in whose place the value is put on the way to the hosts
// that the secret is bound to. It is there once it is granted: `rcrt secret grant NAME TOOL`. Hosts that fetch may
// reach stand in permissions.net.

const HOST = "{{host}}";
const TIMEOUT_MS = 15_000;

interface Input {
  path: string;
  query?: Record<string, string | number | boolean>;
}

interface Output {
  status: number;
  data: unknown;
}

export async function execute(input: Input): Promise<Output> {
  const url = new URL(`https://${HOST}${input.path}`);
  for (const [name, value] of Object.entries(input.query ?? {})) {
    url.searchParams.set(name, String(value));
  }
  const response = await fetch(url, {
    headers: { accept: "application/json" },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) {
    throw new Error(`${HOST} answered ${response.status} ${response.statusText}`);
  }
  return { status: response.status, data: await response.json() };
}
