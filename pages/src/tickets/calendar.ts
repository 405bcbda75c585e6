/**
 * A calendar file (RFC 5545) of one event, to be kept beside its ticket. Our own lines, 0.8 kB as they are sent, rather than
 * a library: `ics` 3.12 takes 24 kB and `ical-generator` 11.1 9 kB, for repetition and time zones that nothing here needs.
 */

/** An event. Times are in a form that `Date` reads, with their offset from UTC. */
export interface CalendarEvent {
  /** Globally unique and ever the same, so that the file of a changed event replaces the one before: `order-42@tickets.example`. */
  readonly uid: string;
  readonly title: string;
  readonly starts_at: string;
  readonly ends_at?: string;
  readonly location?: string;
  readonly description?: string;
  /** Where the tickets are. */
  readonly url: string;
  /** When this was known. */
  readonly stamp: string;
  /** How long before the start the calendar says so. */
  readonly alarm_minutes?: number;
}

/** The type of the file. */
export const CALENDAR_TYPE = "text/calendar;charset=utf-8";
/** Octets of a line, without its end. */
const MOST_OCTETS = 75;

/** Halves of a character that stand alone are replaced, as encoding them would. */
const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, "\ufffd");

/**
 * Text as a value: what has a meaning is escaped, each end of a line is `\n`, and characters that may not be in a text are
 * left out.
 */
export const escaped = (text: string): string =>
  wellFormed(text)
    .replace(/[\\;,]/g, (character) => `\\${character}`)
    .replace(/\r\n|[\r\n\v\f\u0085\u2028\u2029]/g, "\\n")
    .replace(/[\u0000-\u0008\u000e-\u001f\u007f]/g, "");

/** A time in UTC, such as 20261121T190000Z; null if it is none of the years that have four digits. */
export function utc(at: string): string | null {
  const date = new Date(at);
  const year = date.getUTCFullYear();
  return Number.isNaN(year) || year < 1 || year > 9999 ? null : `${date.toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
}

const octets = (character: string): number => {
  const point = character.codePointAt(0) ?? 0;
  return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
};

/** A line in as many as it needs: none has more than 75 octets, and no character is cut in two. */
export function folded(line: string): string {
  let text = "";
  let length = 0;
  for (const character of line) {
    const size = octets(character);
    if (length + size > MOST_OCTETS) {
      text += "\r\n ";
      length = 1;
    }
    text += character;
    length += size;
  }
  return text;
}

/** An address as a value, which is not escaped: only one of the web, and written so that it has no blanks and no ends of lines. */
function addressOf(url: string): string | null {
  try {
    const address = new URL(url);
    return address.protocol === "https:" || address.protocol === "http:" ? address.href : null;
  } catch {
    return null;
  }
}

/** The file; null if nobody can say when the event starts. */
export function calendarFile(event: CalendarEvent): string | null {
  const [starts, stamp] = [utc(event.starts_at), utc(event.stamp)];
  if (starts === null || stamp === null) {
    return null;
  }
  const ends = event.ends_at === undefined ? null : utc(event.ends_at);
  const url = addressOf(event.url);
  const text = (name: string, value: string | undefined) => (value === undefined || value === "" ? [] : [`${name}:${escaped(value)}`]);
  const lines = [
    "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Onsale//Tickets//EN", "CALSCALE:GREGORIAN", "METHOD:PUBLISH", "BEGIN:VEVENT",
    `UID:${escaped(event.uid)}`, `DTSTAMP:${stamp}`, `DTSTART:${starts}`,
    // An end that is not after the start is a fault of the sale's file; without an end, an event ends when it starts.
    ...(ends !== null && Date.parse(event.ends_at ?? "") > Date.parse(event.starts_at) ? [`DTEND:${ends}`] : []),
    ...text("SUMMARY", event.title), ...text("LOCATION", event.location), ...text("DESCRIPTION", event.description),
    ...(url === null ? [] : [`URL:${url}`]),
    ...(event.alarm_minutes === undefined ? [] : ["BEGIN:VALARM", "ACTION:DISPLAY", ...text("DESCRIPTION", event.title), `TRIGGER:-PT${event.alarm_minutes}M`, "END:VALARM"]),
    "END:VEVENT", "END:VCALENDAR",
  ];
  return lines.map((line) => `${folded(line)}\r\n`).join("");
}

/** A name for the file that every system takes; letters of every script stay. */
export const calendarName = (title: string): string =>
  `${[...title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "")].slice(0, 60).join("") || "event"}.ics`;
