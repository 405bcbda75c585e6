/** Paying from the buyer's wallet, where the sale takes it. */
import { useEffect, useState } from "preact/hooks";

import { buyer, problem, reply, type OnsaleProblem } from "../shared/api.ts";
import { money } from "../shared/format.ts";
import { repeated } from "../order/repeat.ts";
import { saleReply } from "../order/sale.ts";
import type { Order } from "../order/words.ts";
import { paymentText, words } from "./words.ts";

const { t } = words;

/** What the buyer's wallet has in the order's currency; null where the sale takes none. */
async function balance({ sale, currency }: Order): Promise<number | null> {
  const { file } = await saleReply(sale);
  if (file.wallet !== true) return null;
  const { wallets } = await reply(buyer.GET("/wallets"));
  return wallets.find((wallet) => wallet.currency === currency)?.balance_minor ?? 0;
}

/** What is known of the wallet, by order. */
const known = new Map<string, number | null>();

/** Waits for the wallet of an order: its button would push that of the other ways away, perhaps from under a finger. */
export async function walletReady(order: Order): Promise<void> {
  // Whoever cannot be told of the wallet pays in another way.
  if (order.state === "pending" && !known.has(order.order)) known.set(order.order, await balance(order).catch(() => null));
}

interface FromWalletProps {
  readonly order: Order;
  /** Called when the order may have changed. */
  readonly onStale: () => void;
}

/** A button, if the wallet has enough; else what it has, if anything. */
export function FromWallet({ order, onStale }: FromWalletProps) {
  const [has, setHas] = useState<number | null>(() => known.get(order.order) ?? null);
  const [isSending, setSending] = useState(false);
  const [refusal, setRefusal] = useState<OnsaleProblem | null>(null);
  useEffect(() => {
    let isOver = false;
    // The page may have been shown before its wallet was known.
    void walletReady(order).then(() => isOver || setHas((before) => before ?? known.get(order.order) ?? null));
    return () => {
      isOver = true;
    };
  }, [order.order]);
  if (has === null || (has === 0 && refusal === null)) return null;
  const pay = async (): Promise<void> => {
    setSending(true);
    setRefusal(null);
    try {
      await repeated(() => reply(buyer.POST("/orders/{order}/payments/wallet", { params: { path: { order: order.order } } })));
    } catch (thrown) {
      const failure = problem(thrown);
      setRefusal(failure);
      const left = failure.document["has_minor"];
      if (typeof left === "number") setHas(left);
    }
    setSending(false);
    onStale();
  };
  const isEnough = has >= order.amount_minor;
  const [amount, left] = [order.amount_minor, has].map((minor) => money(minor, order.currency));
  return (
    <div class="from-wallet">
      {refusal !== null && <p class="problem" role="alert">{paymentText(refusal)}</p>}
      <p class="hint">{t(isEnough ? "wallet.has" : "wallet.short", { has: left ?? "" })}</p>
      {isEnough && <button type="button" disabled={isSending} onClick={() => void pay()}>{t("wallet.pay", { amount: amount ?? "" })}</button>}
    </div>
  );
}
