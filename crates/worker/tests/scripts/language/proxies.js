const seen = [];
const p = new Proxy({}, { get: (t, k) => (seen.push(k), 1), has: () => true });
return p.x === 1 && "y" in p && Reflect.ownKeys({ a: 1, [Symbol.iterator]: 2 }).length === 2 && seen[0] === "x";
