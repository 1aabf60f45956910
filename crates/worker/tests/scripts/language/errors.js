const cause = new Error("inner");
const e = new Error("outer", { cause });
let agg; try { await Promise.any([Promise.reject(1)]); } catch (x) { agg = x; }
return e.cause === cause && agg instanceof AggregateError && agg.errors[0] === 1;
