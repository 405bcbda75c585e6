/** What is owed to the platform: looked for page by page, for nobody knows of an account that it owes before it is read. */
import type { Schemas } from "../shared/api.ts";

/** An account below nothing. */
export type Debt = Schemas["AccountBalance"];

/** What was found so far. */
export interface Debts {
  readonly debts: readonly Debt[];
  /** Where the next page begins; null if everything was looked through. */
  readonly next: string | null;
}

/** Who owes: a merchant of a sale, or a buyer. */
export type Debtor = { readonly merchant: string; readonly sale: string } | { readonly buyer: string };

const keyOf = ({ account, currency }: Debt) => `${currency} ${account}`;

/** Looks through so many pages more, or to the end. A wallet of which several payments are lost may be on several. */
export async function lookForDebts(before: Debts | null, pages: number, page: (cursor: string | null) => Promise<Schemas["Accounts"]>): Promise<Debts> {
  const found = new Map((before?.debts ?? []).map((debt) => [keyOf(debt), debt]));
  let next = before?.next ?? null;
  for (let asked = 0; asked < pages; asked += 1) {
    const reply = await page(next);
    for (const debt of reply.accounts) found.set(keyOf(debt), debt);
    next = reply.next ?? null;
    if (next === null) break;
  }
  return { debts: [...found.values()], next };
}

/** Who owes, by the name of the account; null if the name is of another kind. */
export function debtorOf(account: string): Debtor | null {
  const [, merchant, sale] = /^merchant:([^:]+):(.+)$/.exec(account) ?? [];
  if (merchant !== undefined && sale !== undefined) return { merchant, sale };
  return account.startsWith("wallet:") ? { buyer: account.slice("wallet:".length) } : null;
}
