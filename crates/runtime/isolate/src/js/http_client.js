// Replaces the HTTP client of Deno's fetch: the parent performs requests, so there is nothing to
// configure.
(function () {
class HttpClient {}
return { HttpClient, HttpClientPrototype: HttpClient.prototype };
})();
