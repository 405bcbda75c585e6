/** Elements, without a library: the room is one small file. Text is set as text only. */

/** What may be in an element. */
export type Child = Node | string | null | false;

/** Makes an element. Attributes that are null are left out. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag, attributes: Readonly<Record<string, string | null>> = {}, ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) {
      element.setAttribute(name, value);
    }
  }
  fill(element, children);
  return element;
}

/** Puts children into an element, in place of those that are there. */
export function fill(element: Element, children: readonly Child[]): void {
  element.replaceChildren(...children.filter((child): child is Node | string => child !== null && child !== false));
}

/** Puts children into an element and leaves those alone that are the same: whoever reads there stays where they are. */
export function refill(element: Element, children: readonly Child[]): void {
  renew(element, h("div", {}, ...children));
}

function renew(old: Element, now: Element): void {
  const is = [...now.childNodes];
  if (old.childNodes.length !== is.length) {
    old.replaceChildren(...is);
  }
  is.forEach((other, at) => {
    const one = old.childNodes[at];
    if (one?.firstChild && one.cloneNode().isEqualNode(other.cloneNode())) {
      renew(one as Element, other as Element);
    } else if (!one?.isEqualNode(other)) {
      one?.replaceWith(other);
    }
  });
}

/** Sets a text, if it is another one: a live region speaks when it is touched. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}
