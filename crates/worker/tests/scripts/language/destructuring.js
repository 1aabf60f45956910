const { a = 1, b: { c = 2 } = {}, ...rest } = { d: 4, e: 5 };
const [x, , y = 3, ...z] = [1, 2, undefined, 4, 5];
let p = 1, q = 2; [p, q] = [q, p];
return a + c === 3 && rest.d === 4 && x === 1 && y === 3 && z.length === 2 && p === 2 && (null ?? 7) === 7 && undefined?.x === undefined;
