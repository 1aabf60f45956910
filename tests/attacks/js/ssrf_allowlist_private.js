// attack: reach private addresses that the list does not name
// grants: fetch:allow=localhost
// expect: returns ["host-not-in-allowlist","host-not-in-allowlist","metadata-endpoint"]
return ["http://10.0.0.1/", "http://localhost.evil.test/", "http://169.254.169.254/"].map((url) => {
  try {
    return fetch(url).status;
  } catch (error) {
    return error.reason;
  }
});
