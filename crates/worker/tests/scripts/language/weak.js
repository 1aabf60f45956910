const k = {}; const w = new WeakMap([[k, 1]]);
return w.get(k) === 1 && new WeakRef(k).deref() === k && new WeakSet([k]).has(k);
