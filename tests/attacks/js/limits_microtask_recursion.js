// attack: starve the loop with microtasks that each queue two more
// grants: none
// limits: timeout=100 statements=100000000 memory=16
// expect: execute.timeout|execute.memory
const fork = () => {
  queueMicrotask(fork);
  queueMicrotask(fork);
};
fork();
await new Promise(() => {});
