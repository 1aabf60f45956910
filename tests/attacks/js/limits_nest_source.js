// attack: source text that nests deeper than the parser's stack
// grants: none
// expect: execute.stack
return new Function("return " + "(".repeat(100000) + ")".repeat(100000))();
