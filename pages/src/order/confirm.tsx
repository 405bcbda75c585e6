/** A question before something that is not taken back. The browser's own dialog: keyboard, focus and Escape are its. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import "./confirm.css";
import { shared } from "../shared/text.ts";
import { words } from "./words.ts";

interface ConfirmProps {
  readonly title: string;
  /** The button that does it, in words that say what it does. */
  readonly action: string;
  /** The button that does not; "Cancel" unless set. */
  readonly keep?: string;
  readonly isSending: boolean;
  /** False while it cannot be done, because what it does is not known. */
  readonly isReady?: boolean;
  /** `primary` where the button itself takes nothing away; `danger` unless set. */
  readonly look?: "danger" | "primary";
  readonly onConfirm: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A question with two answers. It is open as long as it is rendered. */
export function Confirm({ title, action, keep = shared.t("cancel"), isSending, isReady = true, look = "danger", onConfirm, onClose, children }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement && before.isConnected) {
        before.focus();
      }
    };
  }, []);
  const close = (event: Event) => {
    event.preventDefault();
    if (!isSending) {
      onClose();
    }
  };
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby={heading} onCancel={close}>
      <h2 id={heading}>{title}</h2>
      {children}
      <div class="row actions">
        <button type="button" disabled={isSending} onClick={onClose}>{keep}</button>
        <button type="button" class={look} disabled={isSending || !isReady} onClick={onConfirm}>{isSending ? words.t("sent") : action}</button>
      </div>
    </dialog>
  );
}
