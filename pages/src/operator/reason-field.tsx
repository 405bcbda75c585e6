/** The field in which an operator says why, or how: required, as the API takes a reason. */
import { useRef, useState } from "preact/hooks";

import { reasonOf } from "./reason.ts";

/** What was typed, and whether it was found to be missing or too long. */
export function useReason() {
  const [text, setText] = useState("");
  const [isBad, setBad] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  return {
    text, isBad, field,
    onText: (typed: string) => { setText(typed); setBad(false); },
    /** The reason as it is sent; null if it cannot be, which the field says and has the focus then. */
    checked: (): string | null => {
      const reason = reasonOf(text);
      if (reason !== null && reason !== "") return reason;
      setBad(true);
      field.current?.focus();
      return null;
    },
  };
}

interface ReasonFieldProps {
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  /** What is said of one that is missing or too long. */
  readonly bad: string;
  readonly reason: ReturnType<typeof useReason>;
}

export function ReasonField({ id, label, hint, bad, reason: { text, isBad, field, onText } }: ReasonFieldProps) {
  return (
    <>
      <div class="field">
        <label for={id}>{label}</label>
        <input id={id} ref={field} type="text" autocomplete="off" required value={text} aria-invalid={isBad}
          aria-describedby={isBad ? `${id}-bad ${id}-hint` : `${id}-hint`} onInput={(event) => onText(event.currentTarget.value)} />
        <p class="hint" id={`${id}-hint`}>{hint}</p>
      </div>
      {isBad && <p class="problem" id={`${id}-bad`} role="alert">{bad}</p>}
    </>
  );
}
