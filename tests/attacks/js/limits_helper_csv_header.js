// attack: a header of a million names that no row repeats
// grants: none
// limits: statements=1000000 timeout=30000
// expect: throws HELPER_RUNTIME result-too-large
return safety.parser.csv("ab,".repeat(1000000), { header: true });
