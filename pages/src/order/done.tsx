/** Says that something was done, where what did it is gone. */
import "./order.css";
import { useEffect, useRef } from "preact/hooks";

/** The words; the focus goes there, because the button that had it is not there any more. */
export function Done({ text }: { readonly text: string }) {
  const element = useRef<HTMLParagraphElement>(null);
  useEffect(() => element.current?.focus(), [text]);
  return <p class="good" tabIndex={-1} ref={element}>{text}</p>;
}
