/** The event of a sale file that nobody has checked yet, and the pictures that it names by their files. */
import { CATEGORIES, type About, type EventFacts, type TextByLanguage } from "../shared/event.ts";
import type { SaleFile } from "./sale-file.ts";

/** A picture as the API takes it. */
export interface MadePicture {
  readonly sha256: string;
  readonly width: number;
  readonly height: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null && !Array.isArray(value);
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const count = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
const byLanguage = (value: unknown): TextByLanguage | null =>
  isObject(value) ? (Object.fromEntries(Object.entries(value).filter(([, one]) => typeof one === "string")) as Record<string, string>) : text(value);

const aboutIn = ({ event }: SaleFile): Readonly<Record<string, unknown>> | null =>
  isObject(event) && isObject(event["about"]) ? event["about"] : null;
const fileOf = (image: unknown): string | null => (isObject(image) && !("sha256" in image) ? text(image["file"]) : null);

/** The files that the pictures of the event are in, each once. */
export const namedPictures = (file: SaleFile): string[] =>
  [...new Set(listOf(aboutIn(file)?.["images"]).flatMap((image) => fileOf(image) ?? []))];

/** The sale file with its pictures by hash; those that are not made stay as they are. */
export function withPictures(file: SaleFile, made: ReadonlyMap<string, MadePicture>): SaleFile {
  const about = aboutIn(file);
  if (about === null || namedPictures(file).length === 0) return file;
  const images = listOf(about["images"]).map((image) => {
    const picture = made.get(fileOf(image) ?? "");
    if (picture === undefined || !isObject(image)) return image;
    const { file: _, ...others } = image;
    return { ...others, sha256: picture.sha256, width: picture.width, height: picture.height };
  });
  return { ...file, event: { ...(file.event as object), about: { ...about, images } } };
}

/** When and where the event is, as far as the file says it rightly; undefined if it says nothing. */
export function eventIn({ event }: SaleFile): EventFacts | undefined {
  if (!isObject(event)) return undefined;
  const venue = event["venue"];
  const picture = event["picture"];
  const name = isObject(venue) ? text(venue["name"]) : null;
  const category = CATEGORIES.find((one) => one === event["category"]);
  return {
    starts_at: text(event["starts_at"]), doors_at: text(event["doors_at"]), ends_at: text(event["ends_at"]), time_zone: text(event["time_zone"]),
    venue: isObject(venue) && name !== null ? { name, city: text(venue["city"]), country: text(venue["country"]) } : null,
    category: category ?? null, performers: listOf(event["performers"]).filter((one): one is string => typeof one === "string"),
    picture: pictureIn(picture),
  };
}

const pictureIn = (value: unknown) => {
  const [sha256, width, height] = isObject(value) ? [text(value["sha256"]), count(value["width"]), count(value["height"])] : [];
  return sha256 == null || width == null || height == null ? null : { sha256, width, height };
};

/** The document of the event, likewise; null if the file has none of its own. Pictures by their files are as they were made. */
export function documentIn(file: SaleFile, made: ReadonlyMap<string, MadePicture>): About | null {
  const about = aboutIn(withPictures(file, made));
  if (about === null) return null;
  return {
    address: byLanguage(about["address"]), access: byLanguage(about["access"]), description: byLanguage(about["description"]), contact: byLanguage(about["contact"]),
    latitude: count(about["latitude"]), longitude: count(about["longitude"]), minimum_age: count(about["minimum_age"]),
    links: listOf(about["links"]).flatMap((link) => (isObject(link) && typeof link["url"] === "string" ? [{ title: byLanguage(link["title"]) ?? link["url"], url: link["url"] }] : [])),
    images: listOf(about["images"]).flatMap((image) => {
      const picture = pictureIn(image);
      return picture === null ? [] : [{ ...picture, alt: (isObject(image) ? byLanguage(image["alt"]) : null) ?? "" }];
    }),
  };
}
