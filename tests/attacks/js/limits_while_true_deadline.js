// attack: burn the processor for ever with a large budget of statements
// grants: none
// limits: timeout=100 statements=100000000
// expect: execute.timeout
while (true);
