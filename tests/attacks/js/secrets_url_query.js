// attack: put the secret into the query of an address, whose reader encodes other marks than JavaScript
// grants: none
// secret: TOKEN=Hunter2/(Sesame)!*'42
// expect: never (Sesame)
return new URL(`https://h.example/?k=${TOKEN}`).href;
