// attack: ask the last of a hundred thousand proxies, without one frame of JavaScript
// grants: none
// expect: execute.stack
let chain = {};
for (let i = 0; i < 100000; i++) chain = new Proxy(chain, {});
return chain.x;
