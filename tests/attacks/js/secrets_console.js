// attack: log the secret, plainly and inside of things
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
console.log(TOKEN);
console.warn({ TOKEN }, [TOKEN], new Map([[TOKEN, TOKEN]]), new Error(TOKEN));
console.debug("x".repeat(100) + TOKEN);
