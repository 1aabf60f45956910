// attack: import at the top of the body
// grants: none
// expect: execute.code_invalid
import * as fs from "fs";
return typeof fs;
