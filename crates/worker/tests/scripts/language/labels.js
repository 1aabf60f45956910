let n = 0; outer: for (let i = 0; i < 3; i++) { for (let j = 0; j < 3; j++) { if (j === 1) continue outer; n++; } }
switch (n) { case 1: case 3: n += 10; default: n++; }
do { n--; } while (n > 12);
return n === 12;
