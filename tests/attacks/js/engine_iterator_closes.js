// attack: close and reopen an iterator while it is being consumed
// grants: none
// expect: returns "survived"
const sly = {
  [Symbol.iterator]() { return this; },
  next() { sly.next = undefined; return { get done() { throw new Error("done"); }, value: 1 }; },
  return() { throw new Error("return"); },
};
for (const act of [() => [...sly], () => new Map(sly), () => Promise.all(sly), () => Iterator.from(sly).drop(1).toArray(), () => Array.from(sly)]) {
  try {
    await act();
  } catch {}
}
return "survived";
