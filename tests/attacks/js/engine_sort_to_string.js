// attack: replace the list while its members are turned to text for sorting
// grants: none
// expect: returns true
const list = [];
for (let i = 0; i < 100; i++) {
  list.push({
    toString() {
      list.length = 1;
      list.push({}, {}, {});
      return String(i);
    },
  });
}
list.sort();
return Array.isArray(list);
