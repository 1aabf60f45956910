// Installs the globals that the tool's grants allow, one bit each. Everything else does not exist.
const GRANT_FETCH = 1;
const GRANT_READ = 2;
const GRANT_WRITE = 4;

function install(grants) {
  const safety = {};
  if (typeof parser !== "undefined") safety.parser = freeze(parser);
  if (grants & (GRANT_READ | GRANT_WRITE)) {
    safety.fs = freeze({
      ...FILE_PLACES,
      ...(grants & GRANT_READ ? FILE_READS : {}),
      ...(grants & GRANT_WRITE ? FILE_WRITES : {}),
    });
  }
  publish({ safety: freeze(safety), Headers, AbortSignal, AbortController });
  if (grants & GRANT_FETCH) publish({ fetch, Response });
}
