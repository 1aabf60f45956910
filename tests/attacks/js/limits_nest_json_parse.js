// attack: text that nests deeper than the parser's stack
// grants: none
// expect: execute.stack
return JSON.parse("[".repeat(200000));
