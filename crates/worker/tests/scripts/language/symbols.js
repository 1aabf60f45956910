const o = { *[Symbol.iterator]() { yield 1; yield 2; }, [Symbol.toPrimitive]: () => 5 };
return [...o].length === 2 && +o === 5 && Symbol.for("a") === Symbol.for("a");
