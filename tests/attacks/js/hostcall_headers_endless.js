// attack: headers from an iterator that never ends
// grants: fetch:strict
// limits: statements=2000
// expect: execute.statements
fetch("http://192.0.2.1/", { headers: { *[Symbol.iterator]() { for (;;) yield ["a", "b"]; } } });
