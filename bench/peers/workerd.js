// workerd: isolates in one process, nothing stored. As a module of the fetch kind, its usual one.
export default {
  async fetch(request) {
    const { a, b } = await request.json();
    return Response.json(a + b);
  },
};
