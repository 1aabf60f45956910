// attack: replace the function by another one behind a comma
// grants: none
// expect: execute.code_invalid
}}, async function () {{
return "escaped";
