// attack: a result that is small as text and large once it is read
// grants: none
// expect: execute.result_too_large
return Array(500000).fill({ "": 0 });
