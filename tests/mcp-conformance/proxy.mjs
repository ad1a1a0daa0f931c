// Adds a token to every request: node proxy.mjs BASE_URL TOKEN. Prints its port.
import http from "node:http";

const [base, token] = process.argv.slice(2);
const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const forwarded = http.request(base + request.url, { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    answer.pipe(response);
  });
  forwarded.on("error", () => response.destroy());
  // A client that leaves cancels its call.
  response.on("close", () => forwarded.destroy());
  request.pipe(forwarded);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
