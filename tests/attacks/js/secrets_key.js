// attack: return the secret as the name of a property
// grants: none
// secret: TOKEN=Hunter2/Sesame+42
// expect: never Hunter2/Sesame+42
return { [TOKEN]: { [`x-${TOKEN}`]: 1 } };
