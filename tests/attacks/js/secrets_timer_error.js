// attack: have the prelude log the secret
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
setTimeout(() => { throw new Error(TOKEN); }, 0);
await new Promise((resolve) => setTimeout(resolve, 1));
return "done";
