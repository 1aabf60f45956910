// expect: {"sum":3,"list":[1,"two"]}
const three = await new Promise((resolve) => queueMicrotask(() => resolve(3)));
return { sum: three, list: [1, "two"] };
