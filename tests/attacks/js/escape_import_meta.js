// attack: ask where the code lies
// grants: none
// expect: execute.code_invalid
return import.meta.url;
