// attack: hide the end of the wrapper behind the comment that old browsers knew
// grants: none
// expect: returns "contained"
return "contained" <!-- }})
