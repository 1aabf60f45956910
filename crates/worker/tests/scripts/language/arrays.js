const list = [3, 1, 2];
return list.toSorted().join() === "1,2,3" && list.join() === "3,1,2" && list.at(-1) === 2 && list.with(0, 9)[0] === 9 && list.toSpliced(0, 1).length === 2 && list.findLast((n) => n > 1) === 2 && [1, [2, [3]]].flat(2).length === 3 && (await Array.fromAsync([Promise.resolve(1)]))[0] === 1;
