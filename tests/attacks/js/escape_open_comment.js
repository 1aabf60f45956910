// attack: end the body in a comment so that the wrapper's end is swallowed
// grants: none
// expect: execute.code_invalid
return "escaped"; /*
