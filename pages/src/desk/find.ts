/** What is searched for. It stands behind the # of the address, which no server is sent, because it may name people. */

/** The ways to find orders, with the fields that each needs. */
export const WAYS = {
  order: ["order"],
  buyer: ["buyer"],
  attendee: ["sale", "attendee"],
  seat: ["sale", "tier", "seat"],
} as const;

/** A way to find orders. */
export type Way = keyof typeof WAYS;
/** A field of a search. */
export type Field = (typeof WAYS)[Way][number];
/** What is typed into fields. */
export type Values = Readonly<Partial<Record<Field, string>>>;

/** A search. */
export interface Search {
  readonly way: Way;
  readonly values: Values;
}

const isWay = (text: string | null): text is Way => text !== null && Object.hasOwn(WAYS, text);

/** The search of an address's part behind the #; null if there is none, or it lacks a field. */
export function searchFrom(hash: string): Search | null {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const way = parameters.get("by");
  if (!isWay(way)) {
    return null;
  }
  const values: Partial<Record<Field, string>> = {};
  for (const field of WAYS[way]) {
    const value = parameters.get(field)?.trim() ?? "";
    if (value === "") {
      return null;
    }
    values[field] = value;
  }
  return { way, values };
}

/** The part of an address behind the # for a search. */
export const hashOf = ({ way, values }: Search): string => `#${new URLSearchParams({ by: way, ...queryOf({ way, values }) }).toString()}`;

/** The query of the API for a search: exactly the fields of its way. */
export function queryOf({ way, values }: Search): Record<string, string> {
  return Object.fromEntries(WAYS[way].map((field) => [field, values[field]?.trim() ?? ""]));
}

/** What is wrong with a search before it is sent; null if nothing is. */
export function defectOf(search: Search): "missing" | "bad-order" | null {
  const query = queryOf(search);
  if (Object.values(query).some((value) => value === "")) {
    return "missing";
  }
  return search.way === "order" && !/^\d{1,19}$/.test(query["order"] ?? "") ? "bad-order" : null;
}
