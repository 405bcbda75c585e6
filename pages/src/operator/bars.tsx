/** What something was in each minute, as bars. The numbers stand beside them. */
import { barsOf, HEIGHT, WIDTH } from "./figures.ts";

/** Bars of some minutes, the earliest first. */
export function Bars({ minutes }: { readonly minutes: readonly number[] }) {
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {barsOf(minutes).map((bar) => <rect key={bar.x} {...bar} />)}
    </svg>
  );
}
