/** Dates for Lua's C library: `gmtime` and `strftime` in the C locale. Scripts see UTC only. */

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = [
  ...["January", "February", "March", "April", "May", "June"],
  ...["July", "August", "September", "October", "November", "December"],
];

export interface Moment {
  second: number;
  minute: number;
  hour: number;
  day: number;
  month: number;
  /** Since 1900, as C counts. */
  year: number;
  weekday: number;
  yearday: number;
}

/** The date of a number of seconds since 1970; years that C's int cannot hold are cut off. */
export function fromSeconds(seconds: bigint): Moment {
  const day = 86400n;
  let days = seconds / day;
  let rest = seconds % day;
  if (rest < 0n) {
    rest += day;
    days -= 1n;
  }
  const era = floorDivide(days + 719468n, 146097n);
  const inEra = Number(days + 719468n - era * 146097n);
  const yearOfEra = Math.floor(
    (inEra - Math.floor(inEra / 1460) + Math.floor(inEra / 36524) - Math.floor(inEra / 146096)) / 365,
  );
  const yearday = inEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * yearday + 2) / 153);
  const month = shifted < 10 ? shifted + 2 : shifted - 10;
  const year = BigInt(yearOfEra) + era * 400n + (month <= 1 ? 1n : 0n);
  const leap = year % 4n === 0n && (year % 100n !== 0n || year % 400n === 0n);
  const before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month] ?? 0;
  const dayOfMonth = yearday - Math.floor((153 * shifted + 2) / 5) + 1;
  const secondsOfDay = Number(rest);
  return {
    second: secondsOfDay % 60,
    minute: Math.floor(secondsOfDay / 60) % 60,
    hour: Math.floor(secondsOfDay / 3600),
    day: dayOfMonth,
    month,
    year: Number(BigInt.asIntN(32, year - 1900n)),
    weekday: Number((((days + 4n) % 7n) + 7n) % 7n),
    yearday: before + dayOfMonth - 1 + (leap && month > 1 ? 1 : 0),
  };
}

/** C's strftime. */
export function format(pattern: string, at: Moment): string {
  return pattern.replace(/%[EO]?([a-zA-Z%])/g, (whole, letter: string) => field(letter, at) ?? whole);
}

function field(letter: string, at: Moment): string | undefined {
  const year = at.year + 1900;
  const two = (value: number): string => String(value).padStart(2, "0");
  const again = (pattern: string): string => format(pattern, at);
  switch (letter) {
    case "a": return (DAYS[at.weekday] ?? "?").slice(0, 3);
    case "A": return DAYS[at.weekday] ?? "?";
    case "b": case "h": return (MONTHS[at.month] ?? "?").slice(0, 3);
    case "B": return MONTHS[at.month] ?? "?";
    case "c": return again("%a %b %e %H:%M:%S %Y");
    case "C": return two(Math.floor(year / 100));
    case "d": return two(at.day);
    case "D": case "x": return again("%m/%d/%y");
    case "e": return String(at.day).padStart(2, " ");
    case "F": return again("%Y-%m-%d");
    case "g": return two(((isoWeek(at)[0] % 100) + 100) % 100);
    case "G": return String(isoWeek(at)[0]);
    case "H": return two(at.hour);
    case "I": return two(at.hour % 12 || 12);
    case "j": return String(at.yearday + 1).padStart(3, "0");
    case "m": return two(at.month + 1);
    case "M": return two(at.minute);
    case "n": return "\n";
    case "p": return at.hour < 12 ? "AM" : "PM";
    case "r": return again("%I:%M:%S %p");
    case "R": return again("%H:%M");
    case "s": return undefined;
    case "S": return two(at.second);
    case "t": return "\t";
    case "T": case "X": return again("%H:%M:%S");
    case "u": return String(at.weekday || 7);
    case "U": return two(Math.floor((at.yearday + 7 - at.weekday) / 7));
    case "V": return two(isoWeek(at)[1]);
    case "w": return String(at.weekday);
    case "W": return two(Math.floor((at.yearday + 7 - ((at.weekday + 6) % 7)) / 7));
    case "y": return two(((year % 100) + 100) % 100);
    case "Y": return String(year);
    case "z": return "+0000";
    case "Z": return "GMT";
    case "%": return "%";
    default: return undefined;
  }
}

/** The year and week of ISO 8601. */
function isoWeek(at: Moment): [number, number] {
  const year = at.year + 1900;
  const week = Math.floor((at.yearday - ((at.weekday + 6) % 7) + 10) / 7);
  if (week < 1) return [year - 1, weeksIn(year - 1)];
  if (week > weeksIn(year)) return [year + 1, 1];
  return [year, week];
}

function weeksIn(year: number): number {
  const lastDay = (of: number): number => (of + Math.floor(of / 4) - Math.floor(of / 100) + Math.floor(of / 400)) % 7;
  return lastDay(year) === 4 || lastDay(year - 1) === 3 ? 53 : 52;
}

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}
