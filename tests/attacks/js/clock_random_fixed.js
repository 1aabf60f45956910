// attack: know the random numbers because every call begins with the snapshot's
// grants: none
// expect: returns true
const mask = (1n << 64n) - 1n;
const firstOf = (state) => {
  state ^= state >> 12n;
  state = (state ^ (state << 25n)) & mask;
  state ^= state >> 27n;
  return Number(((state * 0x2545f4914f6cdd1dn) & mask) >> 11n) / 2 ** 53;
};
const known = [firstOf(0x9e3779b97f4a7c15n), firstOf(1n)];
const seen = new Set(Array.from({ length: 100 }, () => Math.random()));
return seen.size === 100 && !known.some((first) => seen.has(first)) && new Set([crypto.randomUUID(), crypto.randomUUID()]).size === 2;
