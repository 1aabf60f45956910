// attack: free a mapped argument and write through its other name
// grants: none
// expect: returns "survived"
function sly(a, b) {
  const kept = arguments;
  delete kept[0];
  Object.defineProperty(kept, "1", { get: () => kept });
  a = { big: "x".repeat(100) };
  b = a;
  kept.length = 2 ** 10;
  return Array.prototype.slice.call(kept).length;
}
for (let i = 0; i < 100; i++) sly(i, {});
return "survived";
