// attack: close the function around the body and run code of its own at load time
// grants: none
// expect: execute.code_invalid
}});
globalThis.early = true;
(async function () {{
return "escaped";
