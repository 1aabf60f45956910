const g = Object.groupBy([1, 2, 3], (n) => (n % 2 ? "odd" : "even"));
const m = Map.groupBy([1, 2, 3], (n) => n > 1);
return g.odd.length === 2 && g.even[0] === 2 && m.get(true).length === 2;
