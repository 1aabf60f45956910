// throws: no such thing
throw new TypeError("no such thing");
