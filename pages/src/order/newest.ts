/** The newest orders of the buyer, and the word that they have changed. */
import { buyer, reply, type Schemas } from "../shared/api.ts";
import { session } from "../shared/session.ts";
import { onTabs, tellTabs } from "../shared/tabs.ts";

/** Orders of a page. */
export const PAGE = 20;

let asked: { readonly token: string | undefined; readonly answer: Promise<Schemas["PageReply"]> } | null = null;

/** The newest page of orders. Whoever asks while an answer is under way waits for that one. */
export function newestOrders(): Promise<Schemas["PageReply"]> {
  const token = session("buyers")?.token;
  if (asked?.token !== token || asked === null) {
    const answer = reply(buyer.GET("/orders", { params: { query: { limit: PAGE } } }));
    const mine = { token, answer };
    const forget = () => {
      if (asked === mine) asked = null;
    };
    answer.then(forget, forget);
    asked = mine;
  }
  return asked.answer;
}

const listeners = new Set<() => void>();

/** Says that an order of the buyer has changed, to this page and to the other tabs. */
export function ordersChanged(): void {
  listeners.forEach((listener) => listener());
  tellTabs({ kind: "orders" });
}

/** Calls a function when an order of the buyer has changed, here or in another tab; answers how to stop. */
export function onOrdersChanged(listener: () => void): () => void {
  listeners.add(listener);
  const stop = onTabs(({ kind }) => kind === "orders" && listener());
  return () => {
    listeners.delete(listener);
    stop();
  };
}
