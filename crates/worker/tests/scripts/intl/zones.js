// expect: []
// Zones in any spelling, fixed offsets, summer time, and the limits of the date range.
const checks = [];
const same = (found, expected) => { if (JSON.stringify(found) !== JSON.stringify(expected)) checks.push([expected, found]); };
const at = (instant, zone, options) => new Intl.DateTimeFormat("en-CA", {
  timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", ...options,
}).format(instant);
same(at(0, "america/NEW_york"), "1969-12-31, 19:00:00");
same(at(0, "+05:30"), "1970-01-01, 05:30:00");
same(at(0, "-0330"), "1969-12-31, 20:30:00");
same(at(Date.UTC(2024, 2, 10, 6, 59, 59), "America/New_York", { timeZoneName: "short" }), "2024-03-10, 01:59:59 EST");
same(at(Date.UTC(2024, 2, 10, 7, 0, 0), "America/New_York", { timeZoneName: "short" }), "2024-03-10, 03:00:00 EDT");
same(at(Date.UTC(2024, 2, 31, 1, 0, 0), "Europe/Berlin", { timeZoneName: "long" }), "2024-03-31, 03:00:00 Central European Summer Time");
same(at(8.64e15, "UTC"), "275760-09-13, 00:00:00");
same(at(-8.64e15, "UTC", { era: "short" }), "271822-04-20 B, 00:00:00");
same(at(8.64e15, "Asia/Tokyo"), "275760-09-13, 09:00:00");
same(new Intl.DateTimeFormat("en", { timeZone: "utc" }).resolvedOptions().timeZone, "UTC");
same(new Intl.DateTimeFormat("en", { timeZone: "asia/kolkata" }).resolvedOptions().timeZone, "Asia/Kolkata");
same(new Intl.DateTimeFormat("en", { timeZone: "+0530" }).resolvedOptions().timeZone, "+05:30");
same(new Intl.DateTimeFormat().resolvedOptions().timeZone, "UTC");
same(Intl.supportedValuesOf("timeZone").length > 400, true);
// The local time of a zone, as clock tools read it.
const clock = {};
for (const { type, value } of new Intl.DateTimeFormat("en-CA", {
  timeZone: "Asia/Seoul", hour12: false, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
  second: "2-digit", fractionalSecondDigits: 3, weekday: "short",
}).formatToParts(new Date(Date.UTC(2024, 1, 29, 15, 30, 45, 67)))) clock[type] = value;
same(clock, { weekday: "Fri", literal: ".", year: "2024", month: "03", day: "01", hour: "24", minute: "30", second: "45", fractionalSecond: "067" });
return checks;
