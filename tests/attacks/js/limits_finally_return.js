// attack: turn being stopped into a result from within `finally`
// grants: none
// limits: timeout=100 statements=100000000
// expect: execute.timeout
const spin = () => {
  try {
    for (;;);
  } finally {
    return "not stopped";
  }
};
return spin();
