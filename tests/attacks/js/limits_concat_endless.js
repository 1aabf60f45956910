// attack: spread an object that claims to be endless
// grants: none
// limits: statements=2000
// expect: execute.statements
return [].concat({ length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true }).length;
