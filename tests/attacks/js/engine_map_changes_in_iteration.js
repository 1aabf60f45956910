// attack: delete and add entries under every kind of iteration
// grants: none
// expect: returns "survived"
const map = new Map(Array.from({ length: 100 }, (_, i) => [i, i]));
let turns = 0;
map.forEach((value, key) => {
  map.delete(key);
  if (turns++ < 1000) map.set({}, value);
});
const iterator = map[Symbol.iterator]();
map.clear();
map.set(1, 1);
for (const entry of iterator) map.delete(entry[0]);
return "survived";
