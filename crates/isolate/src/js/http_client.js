// Stands in for the HTTP client of Deno's fetch: requests leave by the parent, so there is none to configure.
(function () {
class HttpClient {}
return { HttpClient, HttpClientPrototype: HttpClient.prototype };
})();
