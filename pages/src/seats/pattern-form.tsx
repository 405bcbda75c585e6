/** Seats by their letters, in one row or two: anywhere in a category of a train. */
import { announce } from "../shared/live.ts";
import { Categories, type WayProps } from "./best-form.tsx";
import { type PatternPlace, mostTickets } from "./choice.ts";
import { words } from "./words.ts";

const { t } = words;

/** True if tickets of the sale can be chosen by letter. */
export const hasLetters = (tier: WayProps["sale"]["file"]["tiers"][number]): boolean => (tier.columns ?? []).some((letter) => letter !== null);

/** Patterns that many people want, where the columns have them. */
function presetsOf(columns: readonly (string | null)[]): { key: "window" | "aisle" | "pair" | "facing"; places: PatternPlace[] }[] {
  const letters = columns.flatMap((letter) => (letter === null ? [] : [letter]));
  const gap = columns.indexOf(null);
  const place = (column: string, row: 0 | 1 = 0): PatternPlace => ({ column, row });
  const [first, second] = letters;
  const beside = gap > 0 ? columns[gap - 1] : undefined;
  return [
    ...(first === undefined ? [] : [{ key: "window" as const, places: [place(first)] }]),
    ...(beside === undefined || beside === null ? [] : [{ key: "aisle" as const, places: [place(beside)] }]),
    ...(first === undefined || second === undefined || columns[1] === null ? [] : [
      { key: "pair" as const, places: [place(first), place(second)] },
      { key: "facing" as const, places: [place(first), place(second), place(first, 1), place(second, 1)] },
    ]),
  ];
}

/** The form. */
export function PatternForm(props: WayProps) {
  const { sale, terms, choice, onChoice } = props;
  const tier = sale.file.tiers.find((one) => one.tier === choice.tier && hasLetters(one));
  const columns = tier?.columns ?? [];
  const most = mostTickets(terms);
  const has = (column: string, row: 0 | 1): boolean => choice.pattern.some((place) => place.column === column && place.row === row);
  const toggle = (column: string, row: 0 | 1): void => {
    if (has(column, row)) {
      onChoice({ pattern: choice.pattern.filter((place) => place.column !== column || place.row !== row) });
    } else if (choice.pattern.length >= most) {
      announce(t("full", { count: most }));
    } else {
      onChoice({ pattern: [...choice.pattern, { column, row }] });
    }
  };
  const choose = (change: Partial<WayProps["choice"]>): void => {
    const other = sale.file.tiers.find((one) => one.tier === change.tier);
    // Letters of the category before may be missing in this one.
    const pattern = choice.pattern.filter((place) => (other?.columns ?? []).includes(place.column));
    onChoice(change.tier === undefined ? change : { ...change, pattern });
  };
  return (
    <>
      <p class="hint">{t("pattern-hint")}</p>
      <Categories {...props} onChoice={choose} only={hasLetters} label={t("pattern-category")} />
      {tier !== undefined && (
        <>
          <div class="presets" role="group" aria-label={t("presets")}>
            {presetsOf(columns).filter(({ places }) => places.length <= most).map(({ key, places }) => (
              <button type="button" class="quiet" key={key} onClick={() => onChoice({ pattern: places })}>{t(`preset.${key}`)}</button>
            ))}
          </div>
          <div class="pattern scroll">
            {([0, 1] as const).map((row) => (
              <div class="pattern-row" role="group" aria-label={t(row === 0 ? "pattern-row-1" : "pattern-row-2")} key={row}>
                <span class="label" aria-hidden="true">{t(row === 0 ? "pattern-row-1" : "pattern-row-2")}</span>
                {columns.map((letter, at) => (letter === null
                  ? <span class="aisle" aria-hidden="true" key={`aisle-${at}`}>{row === 0 ? t("aisle") : ""}</span>
                  : (
                    <button
                      type="button" class="letter" key={letter} aria-pressed={has(letter, row)}
                      aria-label={t(row === 0 ? "pattern-seat-1" : "pattern-seat-2", { letter })} onClick={() => toggle(letter, row)}
                    >{letter}</button>
                  )))}
              </div>
            ))}
          </div>
          {choice.pattern.length > 0 && choice.pattern.every((place) => place.row === 1) && <p class="notice warn">{t("pattern-first-row")}</p>}
        </>
      )}
    </>
  );
}
