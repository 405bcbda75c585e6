/** "Check my place": asked for by a button, told in sentences. */
import { session, subjectOf } from "../shared/session.ts";
import { fill, h, say } from "./dom.ts";
import { check, type Proof } from "./proof.ts";
import type { Room } from "./room.ts";
import { number, t } from "./text.ts";

/** The part of the page. */
export class CheckView {
  readonly #button = h("button", { type: "button" }, t("check.go"));
  readonly #outcome = h("div", { role: "status" });
  readonly element = h("details", { hidden: "" }, h("summary", {}, t("check")), this.#button, this.#outcome);
  #room: Room | null = null;

  constructor() {
    this.#button.addEventListener("click", () => void this.#run());
  }

  /** Shown to whoever has a place, drawn or not. */
  show(room: Room): void {
    this.#room = room;
    this.element.hidden = room.kept === null || room.isGone;
    const isDrawn = room.kept?.place != null;
    this.#button.hidden = !isDrawn;
    if (!isDrawn) {
      say(this.#outcome, t("check.wait"));
    } else if (this.#outcome.textContent === t("check.wait")) {
      say(this.#outcome, "");
    }
  }

  async #run(): Promise<void> {
    const room = this.#room;
    if (room === null || room.kept === null) {
      return;
    }
    say(this.#outcome, t("check.busy"));
    try {
      const token = session("buyers")?.token;
      const proof = await check((path) => room.get(path), room.kept, token === undefined ? null : subjectOf(token), room.seenRoot());
      const log = h("a", { href: `/api/sales/${room.sale}/room/log?from=${proof.window.record}` }, t("check.log"));
      fill(this.#outcome, [h("ul", {}, ...sentences(proof, room.kept.index, room.kept.place, room.kept.nonce).map((text) => h("li", {}, text))), log]);
    } catch {
      say(this.#outcome, t("check.failed"));
    }
  }
}

/** What a check found, in words. */
function sentences({ window, place, leaf, isOwn, root, isSeen }: Proof, index: number, shown: number | null, nonce: string): string[] {
  const found = [
    t("check.index", { index: number(index), first: number(window.first), last: number(window.end - 1) }),
    t("check.seed", { seed: window.seed, record: String(window.record) }),
    place === shown && place !== null ? t("check.right", { place: number(place + 1) }) : t("check.wrong"),
  ];
  if (leaf !== null) {
    found.push(t("check.leaf", { leaf }), isOwn === null ? t("check.unsigned", { nonce }) : isOwn ? t("check.own", { nonce }) : t("check.foreign"));
  }
  if (root !== null) {
    found.push(t("check.root", { root }));
  }
  if (isSeen !== null) {
    found.push(isSeen ? t("check.seen") : t("check.unseen"));
  }
  return found;
}
