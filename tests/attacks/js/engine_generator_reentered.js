// attack: resume a generator from within itself
// grants: none
// expect: returns ["TypeError","TypeError","TypeError"]
const names = [];
for (const act of ["next", "return", "throw"]) {
  let self;
  const body = function* () {
    try {
      self[act](new Error("mine"));
    } catch (error) {
      names.push(error.name);
    }
    yield 1;
  };
  self = body();
  self.next();
}
return names;
