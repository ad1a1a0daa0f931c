/**
 * The value in a query and in bodies of three kinds, with characters that have a meaning there. It
 * must arrive complete, and not change the syntax around it.
 *
 * status: success
 * output: [200, 200, 200, 200]
 * secrets: [{"name": "ODD_KEY", "value": "p&ss=\"w\\rd+/%é,end", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/echo/{{tool}}/query", "holds": ["key=p%26ss%3D%22w%5Crd%2B%2F%25%C3%A9%2Cend"]}
 * arrived: {"path": "/echo/{{tool}}/json", "holds": ["{\"key\":\"p&ss=\\\"w\\\\rd+/%é,end\",\"admin\":false}"]}
 * arrived: {"path": "/echo/{{tool}}/form", "holds": ["key=p%26ss%3D%22w%5Crd%2B%2F%25%C3%A9%2Cend&admin=no"]}
 * arrived: {"path": "/echo/{{tool}}/raw", "holds": ["key p&ss=\"w\\rd+/%é,end end"]}
 */
export async function execute(_input: unknown, context: any): Promise<number[]> {
  const key: string = context.secrets.ODD_KEY;
  const at = (path: string) => `http://api.test:{{port}}/echo/{{tool}}/${path}`;
  const post = (path: string, type: string, body: string) =>
    fetch(at(path), { method: "POST", headers: { "content-type": type }, body });
  const answers = await Promise.all([
    fetch(`${at("query")}?key=${key}&admin=no`),
    post("json", "application/json", JSON.stringify({ key, admin: false })),
    post("form", "application/x-www-form-urlencoded", `key=${key}&admin=no`),
    post("raw", "text/plain", `key ${key} end`),
  ]);
  return answers.map((answer) => answer.status);
}
