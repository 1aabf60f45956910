// expect: ["micro","a","b"]
const order = [];
setTimeout(() => order.push("b"), 2); setTimeout(() => order.push("a"), 1); const id = setTimeout(() => order.push("never"), 1); clearTimeout(id);
queueMicrotask(() => order.push("micro"));
await new Promise((resolve) => setTimeout(resolve, 3));
return order;
