// A process for every call: the input on stdin, the result on stdout, without permissions. Plain
// JavaScript, so that Deno has nothing to transpile.
const { a, b } = JSON.parse(await new Response(Deno.stdin.readable).text());
console.log(JSON.stringify(a + b));
