// attack: ask an async generator many things while it ends
// grants: none
// expect: returns "survived"
const body = async function* () {
  try {
    yield await body.self.return(1);
  } finally {
    yield 2;
  }
};
body.self = body();
const asked = [];
for (let i = 0; i < 50; i++) asked.push(body.self.next(), body.self.return(i), body.self.throw(i).catch(() => {}));
await Promise.race([Promise.allSettled(asked), new Promise((resolve) => setTimeout(resolve, 1))]);
return "survived";
