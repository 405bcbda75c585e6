/**
 * A field for a stop, with suggestions as one types: a combobox with a list box, by the pattern of the WAI-ARIA Authoring
 * Practices (https://www.w3.org/WAI/ARIA/apg/patterns/combobox/). The focus stays in the field. Whatever is typed is sent
 * as it is, so that the field does without suggestions where they cannot be loaded.
 */
import { useEffect, useRef, useState } from "preact/hooks";

import { announce } from "../shared/live.ts";
import { suggested, type Suggestion } from "./stops.ts";
import { t, tn } from "./text.ts";

/** Codes of a name that are shown. */
const MOST_CODES = 3;

/** A field: its label, its text, and what may be suggested, empty until {@link StopFieldProps.onUse} has loaded it. */
export interface StopFieldProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly suggestions: readonly Suggestion[];
  /** The field is used: suggestions are wanted now. */
  readonly onUse: () => void;
  readonly onChange: (value: string) => void;
}

/** The field with its list. */
export function StopField({ id, label, value, suggestions, onUse, onChange }: StopFieldProps) {
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const list = useRef<HTMLUListElement>(null);
  const { shown, more } = isOpen ? suggested(suggestions, value) : { shown: [], more: 0 };
  const isShown = shown.length > 0;
  const optionId = (index: number) => `${id}-option-${index}`;
  useEffect(() => {
    if (isShown) {
      announce(more > 0 ? t("stops.many", { count: shown.length + more }) : tn("stops", shown.length));
    }
  }, [isShown, shown.length, more]);
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const open = () => {
    onUse();
    setOpen(true);
    setActive(-1);
  };
  const close = () => {
    setOpen(false);
    setActive(-1);
  };
  const choose = ({ name }: Suggestion) => {
    onChange(name);
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Keys that an input method takes are its own: Enter ends a word of pinyin.
    if (event.isComposing || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    const chosen = shown[active];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isShown) {
        open();
        return;
      }
      // Beyond either end nothing is active: what was typed stands.
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((active + 1 + step + shown.length + 1) % (shown.length + 1) - 1);
    } else if (event.key === "Enter" && chosen !== undefined) {
      event.preventDefault();
      choose(chosen);
    } else if (event.key === "Escape" && isShown) {
      event.preventDefault();
      close();
    }
  };
  return (
    <div class="field stop">
      <label for={id}>{label}</label>
      <input
        id={id} type="text" required autocomplete="off" autocapitalize="off" spellcheck={false} value={value}
        role="combobox" aria-autocomplete="list" aria-expanded={isShown} aria-controls={isShown ? `${id}-list` : undefined}
        aria-activedescendant={active >= 0 && active < shown.length ? optionId(active) : undefined}
        onFocus={onUse} onBlur={close} onKeyDown={onKeyDown}
        onInput={(event) => {
          onChange(event.currentTarget.value);
          open();
        }}
      />
      {isShown && (
        // A press must not take the focus from the field: the list would be gone before the press is over.
        <div class="stops" onPointerDown={(event) => event.preventDefault()} onMouseDown={(event) => event.preventDefault()}>
          <ul ref={list} id={`${id}-list`} role="listbox" aria-label={label}>
            {shown.map((one, index) => (
              <li key={one.name} id={optionId(index)} role="option" aria-selected={index === active} onClick={() => choose(one)}>
                {one.name}
                {one.codes.length > 0 && <span class="hint"> {one.codes.slice(0, MOST_CODES).join(" · ")}{one.codes.length > MOST_CODES && " …"}</span>}
              </li>
            ))}
          </ul>
          {more > 0 && <p class="hint">{tn("stops.more", more)}</p>}
        </div>
      )}
    </div>
  );
}
