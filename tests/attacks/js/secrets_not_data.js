// attack: leak by an error while the result is written down
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
return { toJSON() { throw new Error(TOKEN); } };
