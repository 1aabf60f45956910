// attack: put the secret into every part of an address, each of which has marks of its own
// grants: none
// secret: TOKEN=Hunter2 ^{Sesame}|[42]"<>'~%
// expect: never Sesame
const url = new URL("https://h.example/");
for (const part of ["username", "password", "pathname", "search", "hash"]) url[part] = TOKEN;
return { href: url.href, username: url.username, path: url.pathname, search: url.search, hash: url.hash };
