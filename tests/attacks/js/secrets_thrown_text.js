// attack: throw the bare secret
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
throw TOKEN;
