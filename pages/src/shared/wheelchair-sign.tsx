/** The sign beside the name of a category whose places are for people in wheelchairs. */
import { isForWheelchairs } from "./wheelchair.ts";

/** Nothing beside other names. The name says it in words, so that the sign is for the eye only. */
export function WheelchairSign({ of }: { readonly of: string }) {
  return isForWheelchairs(of)
    ? <svg class="wheelchair" viewBox="0 0 24 24" aria-hidden="true"><circle cx="10.5" cy="3.5" r="2" /><path d="M10.5 7.5v7h6l3 5.5M10.5 10.5h4.5M8 11.2a5.6 5.6 0 1 0 7.4 7" /></svg>
    : null;
}
