// attack: one row of twelve million empty values
// grants: none
// limits: statements=1000000 timeout=30000
// expect: throws HELPER_RUNTIME result-too-large
return safety.parser.csv(",".repeat(12000000));
