/** Setting a door up: which sale, and what the door is called. Needs the network once. */
import { useEffect, useState } from "preact/hooks";

import type { FileForMap } from "../map/plan.ts";
import { eventOf, saleReply } from "../order/sale.ts";
import { layoutIn } from "../shared/seat-place.ts";
import { everyone, problem, reply, type OnsaleProblem } from "../shared/api.ts";
import { clock } from "../shared/clock.ts";
import { useLoaded } from "../shared/hooks.ts";
import { Problem } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { doorName } from "./door.ts";
import { loadLists } from "./lists.ts";
import type { Door, DoorStore } from "./store.ts";
import { t } from "./words.ts";

/** The form. */
export function Setup({ store, onChosen }: { readonly store: DoorStore; readonly onChosen: (door: Door) => Promise<void> }) {
  const [sale, setSale] = useState(new URLSearchParams(location.search).get("sale") ?? "");
  const [name, setName] = useState("");
  const [defect, setDefect] = useState<"bad-sale" | "bad-door" | null>(null);
  const [failure, setFailure] = useState<OnsaleProblem | null>(null);
  const [isLoading, setLoading] = useState(false);
  const { data } = useLoaded(() => reply(everyone.GET("/sales", { params: { query: { limit: 200 } } })), null, []);
  useEffect(() => void (defect !== null && announce(t(defect))), [defect]);
  const begin = async () => {
    const door = doorName(name);
    const wrong = !/^[a-z0-9-]{1,64}$/.test(sale.trim()) ? "bad-sale" : door === null ? "bad-door" : null;
    setDefect(wrong);
    setFailure(null);
    if (wrong !== null || door === null) {
      return;
    }
    setLoading(true);
    try {
      const known = await saleReply(sale.trim());
      const { title, file } = known;
      const event = eventOf(known);
      await loadLists(store, sale.trim());
      await store.keepOffset(clock.offsetMs());
      await onChosen({
        sale: sale.trim(), title, door, tiers: file.tiers.map((one) => ({ tier: one.tier, name: one.name })),
        stops: file.stops ?? [], ...(file.runs_on == null ? {} : { runsOn: file.runs_on }), ...(event === null ? {} : { event }), layout: layoutIn(file as unknown as FileForMap),
      });
    } catch (thrown) {
      setFailure(problem(thrown));
      setLoading(false);
    }
  };
  return (
    <form class="card" noValidate onSubmit={(event) => { event.preventDefault(); if (!isLoading) void begin(); }}>
      <h2>{t("setup")}</h2>
      <p class="hint">{t("setup-hint")}</p>
      <datalist id="sales">{(data?.sales ?? []).map((one) => <option key={one.sale} value={one.sale}>{one.title}</option>)}</datalist>
      <div class="row">
        <div class="field"><label for="sale">{t("sale")}</label>
          <input id="sale" type="text" autocomplete="off" autocapitalize="none" spellcheck={false} list="sales" value={sale} aria-invalid={defect === "bad-sale"} aria-describedby="sale-hint"
            onInput={(event) => setSale(event.currentTarget.value)} />
          <p class="hint" id="sale-hint">{t("sale-hint")}</p></div>
        <div class="field"><label for="door">{t("door")}</label>
          <input id="door" type="text" autocomplete="off" value={name} aria-invalid={defect === "bad-door"} aria-describedby="door-hint" onInput={(event) => setName(event.currentTarget.value)} />
          <p class="hint" id="door-hint">{t("door-hint")}</p></div>
      </div>
      {defect !== null && <p class="problem">{t(defect)}</p>}
      {failure !== null && <Problem problem={failure} text={failure.status === 404 ? t("no-such-sale") : undefined} />}
      <button type="submit" class="primary" aria-disabled={isLoading}>{t("begin")}</button>
      {isLoading && <p class="hint" role="status">{t("loading")}</p>}
    </form>
  );
}
