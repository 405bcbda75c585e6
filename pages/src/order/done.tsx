/** Says what came of something, where what asked for it may be gone. */
import "./order.css";
import { useEffect, useRef } from "preact/hooks";

/** What came of something, in words. */
export interface Outcome {
  readonly text: string;
  readonly isGood: boolean;
}

/** The words; the focus goes there, because the button that had it is not there any more. */
export function Done({ text, isGood = true }: { readonly text: string; readonly isGood?: boolean }) {
  const element = useRef<HTMLParagraphElement>(null);
  useEffect(() => element.current?.focus(), [text]);
  return <p class={isGood ? "good" : "problem"} role={isGood ? undefined : "alert"} tabIndex={-1} ref={element}>{text}</p>;
}
