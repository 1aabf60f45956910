// attack: ports that wrap around or do not exist
// grants: fetch:open
// expect: returns ["port-blocked","invalid-url","invalid-url","invalid-url"]
return ["http://192.0.2.1:0/", "http://192.0.2.1:65616/", "http://192.0.2.1:-1/", "http://192.0.2.1:8x/"].map((url) => {
  try {
    return fetch(url).status;
  } catch (error) {
    return error.reason;
  }
});
