/** The document of an event: asked for once, since what is at a hash never changes. */
import { useEffect, useState } from "preact/hooks";

import { everyone, reply } from "../shared/api.ts";
import type { About, EventFacts } from "../shared/event.ts";

const asked = new Map<string, Promise<About>>();
const known = new Map<string, About>();

const hashOf = (event: EventFacts | null | undefined): string | null => (typeof event?.about === "string" ? event.about : null);

/** The document; null if the event has none. */
export async function aboutOf(event: EventFacts | null | undefined): Promise<About | null> {
  const document = hashOf(event);
  if (document === null) return null;
  let answer = asked.get(document);
  if (answer === undefined) {
    answer = reply(everyone.GET("/documents/{document}", { params: { path: { document } } })) as Promise<About>;
    asked.set(document, answer);
    answer.then((about) => known.set(document, about), () => asked.delete(document));
  }
  return answer;
}

/** The document, as soon as it is there. */
export function useAbout(event: EventFacts | null | undefined): About | null {
  const document = hashOf(event);
  const [, setAnswered] = useState<string | null>(null);
  useEffect(() => {
    let isOver = false;
    aboutOf(event).then(() => isOver || setAnswered(document), () => {});
    return () => {
      isOver = true;
    };
  }, [document]);
  return document === null ? null : (known.get(document) ?? null);
}
