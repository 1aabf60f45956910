const { promise, resolve } = Promise.withResolvers();
queueMicrotask(() => resolve(1));
const settled = await Promise.allSettled([promise, Promise.reject(new Error("x"))]);
const any = await Promise.any([Promise.reject(1), Promise.resolve(2)]);
return settled[0].value === 1 && settled[1].reason.message === "x" && any === 2;
