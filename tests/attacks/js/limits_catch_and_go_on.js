// attack: catch the error that ends the loop and go on
// grants: none
// limits: statements=2000
// expect: execute.statements
for (;;) {
  try {
    for (;;);
  } catch {
    continue;
  } finally {
    continue;
  }
}
