// attack: a page whose tree takes many times its text, outside of the heap
// grants: none
// limits: memory=16 statements=1000000
// expect: throws HELPER_RUNTIME result-too-large
return safety.parser.html("<br a b c d e f g h>".repeat(60000)).select("br").size();
