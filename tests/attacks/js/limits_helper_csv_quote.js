// attack: hide the values of a row behind a quote that opens nothing
// grants: none
// limits: statements=1000000 timeout=30000
// expect: throws HELPER_RUNTIME result-too-large
return safety.parser.csv('a"' + ",".repeat(8000000));
