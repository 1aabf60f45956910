// attack: empty the list while its comparator runs
// grants: none
// expect: returns true
const list = Array.from({ length: 200 }, (_, i) => 200 - i);
list.sort((a, b) => {
  list.length = 0;
  return a - b;
});
return list.every((item) => typeof item === "number");
