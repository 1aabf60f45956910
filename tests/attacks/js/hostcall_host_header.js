// attack: claim another host than the one that is dialled
// grants: fetch:strict
// expect: throws SECURITY literal-private-ip
fetch("http://127.0.0.1/", { headers: { Host: "example.com", "X-Forwarded-Host": "example.com" } });
