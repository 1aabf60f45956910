// attack: have the home folder filled in
// grants: read
// expect: returns ["io","io","io"]
return ["~/.ssh/id_rsa", "$HOME/.ssh/id_rsa", "${HOME}/.ssh/id_rsa"].map((path) => {
  try {
    return safety.fs.readText(path);
  } catch (error) {
    return error.reason;
  }
});
