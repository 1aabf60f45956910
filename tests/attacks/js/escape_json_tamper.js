// attack: replace JSON so that results and errors say something else
// grants: none
// expect: returns {"a":1}
JSON.stringify = () => '"forged"';
JSON.parse = () => "forged";
globalThis.JSON = null;
return { a: 1 };
