/** Chooses the layout of a plan: the organiser's map if it fits, else one that is made from sections and rows. */

import { readMapDocument } from "./document.ts";
import { layOutHall } from "./hall.ts";
import { type Layout, areasOf } from "./layout.ts";
import type { Plan } from "./plan.ts";
import { layOutStadium } from "./stadium.ts";
import { layOutTrain } from "./train.ts";

/** From so many blocks on a sale without a map is a stadium. */
const STADIUM_AREAS = 16;

/** What is written on stages and pitches. */
export interface MapWords {
  stage: string;
  pitch: string;
}

/** Lays a plan out; `aspect` is the width of the screen over its height, `document` the sale's map if it has one. */
export function layOut(plan: Plan, aspect: number, words: MapWords, document?: unknown): Layout {
  const given = document === undefined ? undefined : readMapDocument(plan, document);
  if (given !== undefined) return given;
  if (plan.isTrain) return layOutTrain(plan, aspect);
  return areasOf(plan).length >= STADIUM_AREAS ? layOutStadium(plan, words) : layOutHall(plan, words.stage);
}
