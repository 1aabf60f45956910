return 2n ** 64n === 18446744073709551616n && 1_000 === 1000 && Number.isSafeInteger(2 ** 53 - 1) && (0.1 + 0.2).toFixed(2) === "0.30" && Math.clz32(1) === 31 && BigInt.asUintN(8, 257n) === 1n;
