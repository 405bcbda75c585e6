/** Small pictures, drawn here because not every font has the signs. */

/** A tick. */
export const Tick = () => <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M3 8.5 6.5 12 13 4.5" /></svg>;

/** Four corners: everything is shown. */
export const Whole = () => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4" /></svg>
);
