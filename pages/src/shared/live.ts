/** The live region: what happened, for those who do not see it. One a page, made once and filled later. */

let region: HTMLElement | null = null;

/** Makes the region; before anything is announced, because readers watch only what was there. */
export function openLiveRegion(): void {
  if (region !== null) {
    return;
  }
  region = document.createElement("div");
  region.className = "live";
  region.setAttribute("role", "status");
  region.setAttribute("aria-live", "polite");
  document.body.append(region);
}

/** Says something. The same text twice is said twice. */
export function announce(text: string): void {
  openLiveRegion();
  if (region !== null) {
    region.textContent = region.textContent === text ? `${text}\u00a0` : text;
  }
}
