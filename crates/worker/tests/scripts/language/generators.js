function* naturals() { let n = 0; while (true) yield n++; }
async function* later() { for (const n of [1, 2]) yield n; }
const seen = []; for await (const n of later()) seen.push(n);
return naturals().filter((n) => n % 2).map((n) => n * n).take(3).toArray().join() === "1,9,25" && seen.join() === "1,2";
