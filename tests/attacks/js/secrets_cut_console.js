// attack: have the prelude log an error that it cuts off within the secret
// grants: none
// secret: TOKEN=Hunter2/Sesame+42/Hunter3/Sesame+43
// expect: never Hunter2
setTimeout(() => { throw new Error("x".repeat(3970) + TOKEN); }, 0);
await new Promise((resolve) => setTimeout(resolve, 1));
return "done";
