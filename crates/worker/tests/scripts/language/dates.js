const d = new Date(Date.UTC(2026, 10, 16, 12, 30));
return d.toISOString() === "2026-11-16T12:30:00.000Z" && d.getTimezoneOffset() === 0 && new Date("2024-02-29").getUTCDate() === 29 && isNaN(new Date("x"));
