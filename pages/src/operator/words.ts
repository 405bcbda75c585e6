/** The texts of the page. */
import en from "../i18n/operator.en.json";
import zh from "../i18n/operator.zh.json";
import type { Schemas } from "../shared/api.ts";
import { texts } from "../shared/text.ts";

/** The texts of the page. */
export const { t, tn } = texts(en, zh);

const LOOKS: Readonly<Record<Schemas["Phase"], string>> = {
  upcoming: "", open: "open", paused: "paused", sold_out: "", cancelled: "cancelled", closed: "", archived: "",
};
/** The class that a state of a sale looks like. */
export const phaseLook = (phase: Schemas["Phase"]): string => `state ${LOOKS[phase] ?? ""}`.trim();
