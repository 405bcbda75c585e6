/** Choosing the pictures that a sale file names, and what became of each. */
import { useEffect, useState } from "preact/hooks";

import { announce } from "../shared/live.ts";
import { number } from "../shared/format.ts";
import type { MadePicture } from "./event-file.ts";
import { makePicture, NotAPicture } from "./picture-file.ts";
import { t } from "./words.ts";

/** A picture that is made, or why it is not. */
export type Outcome = MadePicture | NotAPicture["reason"];

interface PicturesFormProps {
  /** The names of the files. */
  readonly names: readonly string[];
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly onOutcomes: (outcomes: ReadonlyMap<string, Outcome>) => void;
}

/** The form. */
export function PicturesForm({ names, outcomes, onOutcomes }: PicturesFormProps) {
  const [isWorking, setWorking] = useState(false);
  const missing = names.filter((name) => typeof outcomes.get(name) !== "object");
  const choose = async (files: FileList | null) => {
    setWorking(true);
    const all = new Map(outcomes);
    for (const file of files ?? []) {
      if (!names.includes(file.name)) continue;
      try {
        all.set(file.name, await makePicture(file));
      } catch (thrown) {
        all.set(file.name, thrown instanceof NotAPicture ? thrown.reason : "unreadable");
      }
    }
    setWorking(false);
    onOutcomes(all);
  };
  useEffect(() => {
    if (!isWorking && outcomes.size > 0) announce(missing.length === 0 ? t("pictures-all") : t("pictures-missing", { names: missing.join(", ") }));
  }, [outcomes, isWorking]);
  return (
    <div class="field">
      <label for="pictures">{t("pictures")}</label>
      <input id="pictures" type="file" multiple accept="image/jpeg,image/png,image/webp,image/avif,image/gif" disabled={isWorking} onChange={(event) => void choose(event.currentTarget.files)} />
      <p class="hint">{t("pictures-hint")}</p>
      <ul class="picture-files">{names.map((name) => <li key={name}><code>{name}</code> <OutcomeText outcome={outcomes.get(name)} /></li>)}</ul>
      {isWorking && <p class="hint" role="status">{t("pictures-working")}</p>}
    </div>
  );
}

function OutcomeText({ outcome }: { readonly outcome: Outcome | undefined }) {
  if (outcome === undefined) return <span class="hint">{t("picture-missing")}</span>;
  if (typeof outcome === "string") return <strong class="warning">{t(`picture-${outcome}`)}</strong>;
  return <span class="hint">{t("picture-made", { width: outcome.width, height: outcome.height, kilobytes: number(Math.ceil(outcome.bytes.length / 1024)) })}</span>;
}
