// attack: make a Response that reads a body which was never fetched
// grants: fetch:strict
// expect: throws INVALID_INPUT no-such-body
return new Response({ id: "0", status: 200, url: "", redirected: false, headers: [], nextStartIndex: null }).text();
