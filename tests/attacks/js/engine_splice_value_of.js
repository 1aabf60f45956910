// attack: shrink the list while `splice` converts its arguments
// grants: none
// expect: returns true
const list = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5];
const cut = list.splice(0, { valueOf: () => ((list.length = 0), 8) }, "x");
return cut.every((item) => typeof item === "number");
