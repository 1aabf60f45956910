setTimeout(() => { throw new Error("logged"); }, 0);
await new Promise((resolve) => setTimeout(resolve, 1));
return true;
