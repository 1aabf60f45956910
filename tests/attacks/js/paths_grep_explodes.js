// attack: a pattern whose automaton doubles with every character
// grants: read,write
// expect: returns []
safety.fs.writeText("long.txt", "ab".repeat(5000));
return safety.fs.grep("(a|b)*a(a|b){60}c", "long.txt");
