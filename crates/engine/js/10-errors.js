// Errors of helpers carry a class, the helper's name and a reason that programs can test.
class ToolError extends BaseError {
  constructor(kind, helper, reason, message) {
    super(message);
    this.kind = kind;
    this.helper = helper;
    this.reason = reason;
  }
}
defineProperty(ToolError.prototype, "name", { value: "ToolError", writable: true, configurable: true, enumerable: false });

// The same, for errors that web code expects to be a TypeError.
class InvalidValue extends WrongType {
  constructor(helper, reason, message) {
    super(message);
    this.kind = "INVALID_INPUT";
    this.helper = helper;
    this.reason = reason;
  }
}

const isHelperError = (thrown) => thrown instanceof ToolError || thrown instanceof InvalidValue;

const invalidInput = (helper, reason, message) => new ToolError("INVALID_INPUT", helper, reason, message);

// Errors from the host have the form {kind, helper, reason, message}.
function refuse({ kind, helper, reason, message }) {
  return new ToolError(kind, helper, reason, message);
}
