// attack: turn a dense list into a sparse one while it is copied
// grants: none
// expect: returns true
const list = [1, 2, 3, 4];
const copy = list.slice(0, { valueOf: () => ((list[100000] = 1), delete list[1], 4) });
return copy.length === 4 && copy[0] === 1;
