/** Keeps the event of an order, or its journeys, in the calendar of whoever has the tickets. */
import type { Names } from "../order/sale.ts";
import { journeyLine, journeysOf } from "../order/when-where.tsx";
import { clock } from "../shared/clock.ts";
import { besideText, eventWords, instantOf, stopTime, whereText } from "../shared/event.ts";
import { href } from "../shared/language.ts";
import { saveFile } from "../shared/save.ts";
import { CALENDAR_TYPE, calendarFile, calendarName, type CalendarEvent } from "./calendar.ts";
import type { TicketOrder } from "./ticket.ts";

const { t } = eventWords;

/** What the calendar is told, each with what it is called here; nothing where nobody has said when it is. */
export function calendarEvents(order: Pick<TicketOrder, "order" | "lines">, names: Names, address: string | null, at: { readonly origin: string; readonly nowMs: number }): CalendarEvent[] {
  const path = href(`/my/tickets/${order.order}`);
  const common = { url: at.origin + path, stamp: new Date(at.nowMs).toISOString() };
  const uid = (part: string) => `order-${order.order}${part}@${new URL(at.origin).host}`;
  const seats = (lines: TicketOrder["lines"]) =>
    lines.flatMap(({ tickets }) => tickets.filter(({ refund }) => refund === undefined).map(({ seat }) => names.seat(seat))).join("\n");
  const { timetable, event } = names;
  if (timetable !== null) {
    return journeysOf(order.lines).flatMap((journey): CalendarEvent[] => {
      const [leaves, comes] = [stopTime(timetable, journey.from, "departs"), stopTime(timetable, journey.to, "arrives")];
      const [startsMs, endsMs] = [leaves === null ? null : instantOf(leaves), comes === null ? null : instantOf(comes)];
      return startsMs === null ? [] : [{
        ...common, uid: uid(`-${journey.from}-${journey.to}`), title: names.title, location: names.stop(journey.from),
        starts_at: new Date(startsMs).toISOString(), ...(endsMs === null ? {} : { ends_at: new Date(endsMs).toISOString() }),
        description: `${journeyLine(names, journey, "full")}\n${seats(order.lines.filter(({ from, to }) => from === journey.from && to === journey.to))}`,
      }];
    });
  }
  if (event?.starts_at == null) return [];
  const doors = besideText(event.doors_at, event.starts_at, event.time_zone);
  // Many addresses begin with the venue.
  const hasVenue = event.venue != null && address !== null && address.includes(event.venue.name);
  const location = [hasVenue ? null : whereText(event.venue), address].filter((part) => part !== null).join(", ");
  return [{
    ...common, uid: uid(""), title: names.title, starts_at: event.starts_at, ...(event.ends_at == null ? {} : { ends_at: event.ends_at }),
    ...(location === "" ? {} : { location }),
    description: `${doors === null ? "" : `${t("doors.at", { time: doors })}\n`}${seats(order.lines)}`,
  }];
}

/** A button for each; none where nobody has said when it is. */
export function AddToCalendar({ order, names, address }: { readonly order: Pick<TicketOrder, "order" | "lines">; readonly names: Names; readonly address: string | null }) {
  const events = calendarEvents(order, names, address, { origin: location.origin, nowMs: clock.nowMs() });
  const save = (event: CalendarEvent) => {
    const file = calendarFile(event);
    if (file !== null) saveFile(new Blob([file], { type: CALENDAR_TYPE }), calendarName(event.title));
  };
  return <>{events.map((event) => <button type="button" key={event.uid} onClick={() => save(event)}>{t("calendar")}</button>)}</>;
}
