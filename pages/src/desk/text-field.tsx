/** A field of one line, with its hint. */

interface TextProps {
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  readonly mode: "decimal" | "text";
  /** What was typed cannot be sent. */
  readonly isBad: boolean;
  readonly onInput: (value: string) => void;
}

export function Text({ id, label, hint, value, mode, isBad, onInput }: TextProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input id={id} type="text" inputMode={mode} autocomplete="off" value={value} aria-describedby={`${id}-hint`} aria-invalid={isBad}
        onInput={(event) => onInput(event.currentTarget.value)} />
      <p class="hint" id={`${id}-hint`}>{hint}</p>
    </div>
  );
}
