// attack: flood the gateway with a result
// grants: none
// expect: execute.result_too_large
return "x".repeat(6000000);
