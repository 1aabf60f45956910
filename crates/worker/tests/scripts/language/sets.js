const a = new Set([1, 2, 3]), b = new Set([2, 3, 4]);
return [...a.union(b)].length === 4 && [...a.intersection(b)].join() === "2,3" && [...a.difference(b)].join() === "1" && !a.isSubsetOf(b);
