/** The room document, for those who run the room. */
import type { Schemas } from "../shared/api.ts";
import { clockTime, number, shortDateTime } from "../shared/format.ts";
import { t } from "./words.ts";

type Group = Schemas["GroupDocument"];

const LOOKS: Readonly<Record<Schemas["RoomState"], string>> = {
  joining: "", drawing: "", drawn: "", serving: "open", paused: "paused", recovering: "paused", stalled: "cancelled", sold_out: "", closed: "cancelled",
};

/** What the room does, and how far it is. */
export function RoomView({ room }: { readonly room: Schemas["Document"] }) {
  const isBefore = room.state === "joining" || room.state === "drawing" || room.state === "drawn";
  return (
    <div class="card room-view">
      <p><span class={`state ${LOOKS[room.state]}`.trim()}>{t(`room.${room.state}`)}</span></p>
      <dl class="facts">
        {isBefore && <><dt>{t("room-draws")}</dt><dd>{shortDateTime(room.draw_closes_at)}</dd><dt>{t("room-opens")}</dt><dd>{clockTime(room.opens_at)}</dd></>}
        <dt>{t("room-rate")}</dt><dd>{number(room.rate)}</dd>
        <dt>{t("room-notice")}</dt><dd>{room.notice ?? t("room-no-notice")}</dd>
      </dl>
      {room.groups.map((group) => <GroupView key={group.group} group={group} isAlone={room.groups.length === 1} />)}
      <p class="hint">{t("room-record", { record: room.record })}</p>
    </div>
  );
}

const range = ([from, to]: readonly [number, number]) => t("room-range", { from, to });

function GroupView({ group, isAlone }: { readonly group: Group; readonly isAlone: boolean }) {
  const { joined, serving, passed, advance, lasts_to } = group;
  const served = Math.min(joined, serving);
  return (
    <div class="group">
      {!isAlone && <h3>{t("room-group", { group: group.group })}</h3>}
      <RoomBar group={group} />
      <dl class="facts">
        <dt>{t("room-joined")}</dt><dd>{number(joined)}</dd>
        <dt>{t("room-waiting")}</dt><dd>{number(joined - served)}</dd>
        <dt>{t("room-served")}</dt><dd>{number(served)}</dd>
        <dt>{t("room-passed")}</dt><dd>{number(Math.min(passed, served))}</dd>
        {advance !== undefined && <><dt>{t("room-advance")}</dt><dd>{range(advance)}</dd></>}
        {lasts_to !== undefined && <><dt>{t("room-lasts")}</dt><dd>{range(lasts_to)}</dd></>}
      </dl>
    </div>
  );
}

/** Who is served, who waits, and where tickets are expected to end. */
function RoomBar({ group }: { readonly group: Group }) {
  const { joined, serving, lasts_to } = group;
  if (joined === 0) {
    return null;
  }
  const served = Math.min(joined, serving);
  const at = (place: number) => (Math.min(place, joined) / joined) * 100;
  const ends = lasts_to !== undefined && lasts_to[0] < joined ? lasts_to : null;
  const label = lasts_to === undefined ? t("room-bar-short", { served, joined }) : t("room-bar", { served, joined, from: lasts_to[0], to: lasts_to[1] });
  return (
    <>
      <svg class="room-bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={label}>
        <rect class="waiting" width="100" height="10" />
        <rect class="served" width={at(served)} height="10" />
        {ends !== null && <rect class="lasts" x={at(ends[0])} width={Math.max(0.6, at(ends[1]) - at(ends[0]))} height="10" />}
      </svg>
      <ul class="legend" aria-hidden="true">
        <li class="served">{t("room-legend-served")}</li><li class="waiting">{t("room-legend-waiting")}</li>
        {ends !== null && <li class="lasts">{t("room-legend-lasts")}</li>}
      </ul>
    </>
  );
}
