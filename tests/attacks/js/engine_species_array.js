// attack: hand the engine results of its own making, behind proxies
// grants: none
// expect: returns "survived"
class Sly extends Array {
  static get [Symbol.species]() {
    return function () {
      return new Proxy([], { defineProperty: () => true, set: () => true });
    };
  }
}
for (const act of ["map", "filter", "slice", "concat", "splice", "flat", "flatMap"]) {
  try {
    Sly.from([1, 2, 3])[act]((item) => item);
  } catch {}
}
return "survived";
