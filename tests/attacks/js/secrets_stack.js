// attack: name a function after the secret and throw from within
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
const sly = { [TOKEN]() { throw new Error("look at the stack"); } };
sly[TOKEN]();
