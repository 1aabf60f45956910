// attack: return a secret of digits as a number
// grants: none
// secret: TOKEN=4815162342
// expect: never 4815162342
return { pin: Number(TOKEN), list: [parseInt(TOKEN, 10)] };
