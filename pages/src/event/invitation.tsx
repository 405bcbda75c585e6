/** What a sale invites to: when and where it is, beside its title; and further down all else that people want to know. */
import { useEffect, useState } from "preact/hooks";

import "./event.css";
import { EventPicture } from "./picture.tsx";
import { besideText, eventWords, journeyText, mapLink, safeLink, textOf, whenText, whereText, type About, type EventFacts } from "../shared/event.ts";
import type { KnownSale } from "../order/sale.ts";

const { t } = eventWords;

/** Where pictures are that are not behind the API yet, by hash. */
export type Addresses = ReadonlyMap<string, string>;

interface AboutProps {
  readonly event: EventFacts | undefined;
  readonly about: About | null;
  readonly addresses?: Addresses;
}

/** The first picture: that of the event, with what it shows if its document says so. */
export function FirstPicture({ event, about, addresses }: AboutProps) {
  const picture = event?.picture ?? about?.images?.[0];
  const alt = about?.images?.find(({ sha256 }) => sha256 === picture?.sha256)?.alt;
  return picture == null ? null : <div class="first-picture"><EventPicture picture={picture} address={addresses?.get(picture.sha256)} alt={textOf(alt) ?? ""} isFirst /></div>;
}

/** Day and place; of a train, where and when it leaves and arrives. */
export function WhenAndWhere({ sale, from, to }: { readonly sale: KnownSale; readonly from: string | null; readonly to: string | null }) {
  const stops = sale.file.stops ?? [];
  if (stops.length > 0) return <Journey sale={sale} from={from} to={to} />;
  const { event } = sale;
  const [when, where] = [whenText(event?.starts_at, event?.time_zone), whereText(event?.venue, true)];
  const performers = event?.performers ?? [];
  return (
    <div class="when-where">
      {performers.length > 0 && <p class="performers">{performers.join(" · ")}</p>}
      {when !== null && <p class="when"><time dateTime={event?.starts_at ?? ""}>{when}</time></p>}
      {where !== null && <p class="where">{where}</p>}
    </div>
  );
}

function Journey({ sale, from, to }: { readonly sale: KnownSale; readonly from: string | null; readonly to: string | null }) {
  const stops = sale.file.stops ?? [];
  const at = (stop: string | null) => stops.findIndex((one) => one.stop === stop);
  const isOne = at(from) >= 0 && at(from) < at(to);
  const [first, last] = isOne ? [stops[at(from)], stops[at(to)]] : [stops[0], stops[stops.length - 1]];
  if (first === undefined || last === undefined) return null;
  const { departs, arrives } = journeyText(sale.file, first.stop, last.stop);
  return (
    <dl class="when-where ends">
      <div><dt>{t("departs")}</dt><dd><strong>{first.name}</strong>{departs !== null && <><br />{departs}</>}</dd></div>
      <div><dt>{t("arrives")}</dt><dd><strong>{last.name}</strong>{arrives !== null && <><br />{arrives}</>}</dd></div>
    </dl>
  );
}

/** All else that is known of the event. */
export function AboutEvent({ event, about, addresses }: AboutProps) {
  const beside = (at: string | null | undefined) => besideText(at, event?.starts_at, event?.time_zone);
  const [doors, ends] = [beside(event?.doors_at), beside(event?.ends_at)];
  const [address, access, contact, description] = [about?.address, about?.access, about?.contact, about?.description].map((text) => textOf(text));
  const map = about === null ? null : mapLink(about);
  const age = about?.minimum_age;
  const links = (about?.links ?? []).flatMap(({ title, url }) => {
    const address = safeLink(url);
    return address === null ? [] : [{ address, title: textOf(title) ?? address }];
  });
  const more = (about?.images ?? []).filter(({ sha256 }, at) => sha256 !== (event?.picture?.sha256 ?? about?.images?.[0]?.sha256) && about?.images?.findIndex((one) => one.sha256 === sha256) === at);
  const hasFacts = [doors, ends, address, map, access, contact].some((one) => one != null) || age != null || links.length > 0;
  if (!hasFacts && description == null && more.length === 0) return null;
  return (
    <section class="about" aria-labelledby="about">
      <h2 id="about">{t("about")}</h2>
      {hasFacts && (
        <dl class="facts">
          {(address != null || map !== null) && <><dt>{t("about.address")}</dt><dd>{address}{map !== null && <>{address != null && <br />}<a href={map} rel="noopener nofollow">{t("map")}</a></>}</dd></>}
          {doors !== null && <><dt>{t("doors")}</dt><dd><time dateTime={event?.doors_at ?? ""}>{doors}</time></dd></>}
          {ends !== null && <><dt>{t("ends")}</dt><dd><time dateTime={event?.ends_at ?? ""}>{ends}</time></dd></>}
          {age != null && <><dt>{t("about.age")}</dt><dd>{age === 0 ? t("about.age.all") : t("about.age.from", { age })}</dd></>}
          {access != null && <><dt>{t("about.access")}</dt><dd class="lines-kept">{access}</dd></>}
          {contact != null && <><dt>{t("about.contact")}</dt><dd class="lines-kept">{contact}</dd></>}
          {links.length > 0 && <><dt>{t("about.links")}</dt><dd><ul class="links">{links.map(({ address: to, title }) => <li key={to}><a href={to} rel="noopener nofollow">{title}</a></li>)}</ul></dd></>}
        </dl>
      )}
      {description != null && <Description text={description} />}
      {more.length > 0 && <div class="pictures">{more.map((image) => <EventPicture key={image.sha256} picture={image} address={addresses?.get(image.sha256)} alt={textOf(image.alt) ?? ""} />)}</div>}
    </section>
  );
}

/** Loads what reads Markdown. */
export const loadMarkdown = () => import("./markdown.tsx");

/** The description; as it was written, where what reads Markdown does not come. */
function Description({ text }: { readonly text: string }) {
  const [Read, setRead] = useState<typeof import("./markdown.tsx").Markdown | null>(null);
  useEffect(() => {
    let isOver = false;
    loadMarkdown().then(({ Markdown }) => isOver || setRead(() => Markdown), () => {});
    return () => {
      isOver = true;
    };
  }, []);
  return Read === null ? <p class="lines-kept">{text}</p> : <Read text={text} />;
}
