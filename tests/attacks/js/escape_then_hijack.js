// attack: catch what the wrapper awaits by a `then` on Object.prototype
// grants: none
// expect: returns {"caught":0}
let caught = 0;
Object.prototype.then = function (resolve) {
  delete Object.prototype.then;
  if (this === globalThis || "describe" in this) caught++;
  resolve({ caught });
};
return { a: 1 };
