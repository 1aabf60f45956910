// attack: learn where the gateway stands
// grants: none
// expect: returns [0,"1970-01-01T00:00:00.000Z"]
return [new Date().getTimezoneOffset(), new Date(1970, 0, 1).toISOString()];
