// attack: move the parts of an object that claims to be endless
// grants: none
// limits: timeout=100 statements=100000000
// expect: execute.timeout
return Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1).length;
