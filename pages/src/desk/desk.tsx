/** Finding orders, and exporting a sale. */
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { useNames } from "../order/sale.ts";
import { State } from "../order/parts.tsx";
import { words } from "../order/words.ts";
import { exportOrders, routes, type FoundOrder } from "../operator/api.ts";
import { everyone, problem, reply, type OnsaleProblem } from "../shared/api.ts";
import { money, shortDateTime } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { href } from "../shared/language.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { defectOf, hashOf, queryOf, searchFrom, WAYS, type Field, type Search, type Values, type Way } from "./find.ts";
import { t, tn } from "./words.ts";

const NAMES = Object.keys(WAYS) as Way[];

/** The desk; a sale is filled in where a sale's page leads here. */
export function Desk({ sale }: { readonly sale: string }) {
  const [search, setSearch] = useState(() => searchFrom(location.hash));
  useEffect(() => {
    // The back button goes through the searches.
    const look = () => setSearch(searchFrom(location.hash));
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  return (
    <>
      <Sales />
      <Find key={search === null ? "" : hashOf(search)} search={search} sale={sale} />
      {search !== null && <Found key={hashOf(search)} search={search} />}
      <Export sale={sale} />
    </>
  );
}

/** Suggestions for the fields that take the id of a sale. */
function Sales() {
  const { data } = useLoaded(() => reply(everyone.GET("/sales", { params: { query: { limit: 200 } } })), null, []);
  return <datalist id="sales">{(data?.sales ?? []).map(({ sale, title }) => <option key={sale} value={sale}>{title}</option>)}</datalist>;
}

function Find({ search, sale }: { readonly search: Search | null; readonly sale: string }) {
  const [way, setWay] = useState<Way>(search?.way ?? (sale === "" ? "order" : "seat"));
  const [values, setValues] = useState<Values>(search?.values ?? (sale === "" ? {} : { sale }));
  const [defect, setDefect] = useState<ReturnType<typeof defectOf>>(null);
  const submit = () => {
    const wanted = { way, values };
    const wrong = defectOf(wanted);
    setDefect(wrong);
    if (wrong === null && location.hash !== hashOf(wanted)) {
      location.hash = hashOf(wanted);
    }
  };
  return (
    <section aria-labelledby="find">
      <h2 id="find">{t("find")}</h2>
      <form class="card" noValidate onSubmit={(event) => { event.preventDefault(); submit(); }}>
        <fieldset class="ways">
          <legend>{t("find-by")}</legend>
          {NAMES.map((name) => (
            <label key={name}><input type="radio" name="way" checked={way === name} onChange={() => { setWay(name); setDefect(null); }} />{t(`by.${name}`)}</label>
          ))}
        </fieldset>
        <div class="row">
          {WAYS[way].map((field) => <Input key={field} field={field} value={values[field] ?? ""} sale={values.sale ?? ""} isBad={defect !== null && (values[field] ?? "").trim() === ""}
            onInput={(value) => setValues((before) => ({ ...before, [field]: value }))} />)}
          <button type="submit" class="primary">{t("search")}</button>
        </div>
        {defect !== null && <p class="problem" role="alert">{t(defect)}</p>}
      </form>
    </section>
  );
}

interface InputProps {
  readonly field: Field;
  readonly value: string;
  readonly sale: string;
  readonly isBad: boolean;
  readonly onInput: (value: string) => void;
}

function Input({ field, value, sale, isBad, onInput }: InputProps) {
  const id = `find-${field}`;
  const hint = field === "order" || field === "sale" ? `${id}-hint` : undefined;
  const list = field === "sale" ? "sales" : field === "tier" ? "tiers" : undefined;
  return (
    <div class="field">
      <label for={id}>{t(`field.${field}`)}</label>
      <input id={id} type="text" inputMode={field === "order" ? "numeric" : "text"} autocomplete="off" spellcheck={false} value={value} list={list}
        aria-describedby={hint} aria-invalid={isBad} onInput={(event) => onInput(event.currentTarget.value)} />
      {hint !== undefined && <p class="hint" id={hint}>{t(field === "order" ? "field.order-hint" : "field.sale-hint")}</p>}
      {field === "tier" && <Tiers sale={sale} />}
    </div>
  );
}

/** Suggestions for the tier of a sale. */
function Tiers({ sale }: { readonly sale: string }) {
  const wanted = sale.trim();
  const { data } = useLoaded(async () => (/^[a-z0-9-]{1,64}$/.test(wanted) ? reply(everyone.GET("/sales/{sale}", { params: { path: { sale: wanted } } })) : null), null, [wanted]);
  return <datalist id="tiers">{(data?.file.tiers ?? []).map(({ tier, name }) => <option key={tier} value={tier}>{name}</option>)}</datalist>;
}

function Found({ search }: { readonly search: Search }) {
  const [older, setOlder] = useState<{ orders: readonly FoundOrder[]; next: string | null } | null>(null);
  const [failed, setFailed] = useState<OnsaleProblem | null>(null);
  const { data, failure, reload } = useLoaded(async () => {
    const page = await routes.find(queryOf(search));
    announce(page.orders.length === 0 ? t("found-none") : tn("found", page.orders.length));
    return page;
  }, null, []);
  if (data === null) {
    return failure === null ? <Loading /> : failure.status === 404 ? <p role="status">{t("found-none")}</p> : <Problem problem={failure} retry={() => void reload()} />;
  }
  const orders = [...data.orders, ...(older?.orders ?? [])];
  const next = older === null ? (data.next ?? null) : older.next;
  const more = async () => {
    try {
      const page = await routes.find({ ...queryOf(search), ...(next === null ? {} : { before: next }) });
      setOlder({ orders: [...(older?.orders ?? []), ...page.orders], next: page.next ?? null });
      setFailed(null);
    } catch (thrown) {
      setFailed(problem(thrown));
    }
  };
  return (
    <section aria-label={t("found")}>
      <p>{orders.length === 0 ? t("found-none") : tn("found", orders.length)}</p>
      {orders.length > 0 && <div class="card flush"><ul class="sale-list">{orders.map((order) => <Row key={order.order} order={order} />)}</ul></div>}
      {failed !== null && <Problem problem={failed} />}
      {next !== null && <button type="button" onClick={() => void more()}>{t("more")}</button>}
    </section>
  );
}

function Row({ order }: { readonly order: FoundOrder }) {
  const names = useNames(order.sale);
  const tickets = order.lines.reduce((sum, line) => sum + line.tickets.length, 0);
  return (
    <li>
      <a href={href(`/operator/desk?order=${order.order}`)}>{t("open-order", { order: order.order })}</a>
      <State order={order} />
      <span class="hint">
        {names.title} · {words.tn("tickets", tickets)} · {money(order.amount_minor, order.currency)} · {shortDateTime(order.created_at)}
        {order.buyer !== undefined && <> · {t("buyer")} {order.buyer}</>}
      </span>
    </li>
  );
}

/** Puts parts into one file, and has the browser keep it. */
function download(parts: readonly string[], name: string): void {
  const address = URL.createObjectURL(new Blob([...parts], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function Export({ sale }: { readonly sale: string }) {
  const id = useId();
  const [value, setValue] = useState(sale);
  const [lines, setLines] = useState<number | null>(null);
  const [done, setDone] = useState<number | null>(null);
  const [failure, setFailure] = useState<OnsaleProblem | null>(null);
  const stopping = useRef<AbortController | null>(null);
  useEffect(() => () => stopping.current?.abort(), []);
  const run = async () => {
    const stop = new AbortController();
    stopping.current = stop;
    let count = 0;
    setDone(null);
    setFailure(null);
    setLines(0);
    try {
      const parts = await exportOrders(value.trim(), (soFar) => { count = soFar; setLines(soFar); }, undefined, stop.signal);
      download(parts, `${value.trim()}-orders.csv`);
      setDone(count);
      announce(tn("export-done", count));
    } catch (thrown) {
      if (!stop.signal.aborted) setFailure(problem(thrown));
    }
    setLines(null);
  };
  return (
    <section aria-labelledby="export">
      <h2 id="export">{t("export")}</h2>
      <form class="card" noValidate onSubmit={(event) => { event.preventDefault(); if (value.trim() !== "" && lines === null) void run(); }}>
        <p class="hint">{t("export-hint")}</p>
        <div class="row">
          <div class="field"><label for={id}>{t("field.sale")}</label>
            <input id={id} type="text" autocomplete="off" list="sales" value={value} onInput={(event) => setValue(event.currentTarget.value)} /></div>
          {lines === null
            ? <button type="submit" disabled={value.trim() === ""}>{t("export-start")}</button>
            : <button type="button" onClick={() => stopping.current?.abort()}>{t("export-stop")}</button>}
        </div>
        {lines !== null && <p class="notice" role="status">{tn("export-lines", lines)}</p>}
        {done !== null && <p class="good">{tn("export-done", done)}</p>}
        {failure !== null && <Problem problem={failure} />}
      </form>
    </section>
  );
}
