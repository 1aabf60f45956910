// attack: reach the prelude's scope by code made from text
// grants: none
// expect: returns ["undefined","undefined","undefined","undefined","undefined","undefined"]
const source = "return [typeof host, typeof OP, typeof hooks, typeof random, typeof install, typeof tick].join()";
const kinds = [Function, (async () => {}).constructor, function* () {}.constructor, async function* () {}.constructor];
const found = [kinds[0](source)(), await kinds[1](source)(), kinds[2](source)().next().value, (await kinds[3](source)().next()).value];
const direct = eval(`(() => { ${source} })()`);
const indirect = (0, eval)(`(() => { ${source} })()`);
return [...found, direct, indirect].map((list) => (list === Array(6).fill("undefined").join() ? "undefined" : list));
