/** Who is told of what happens, and how far. */
import { number, shortDateTime } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { Loading, Problem } from "../shared/layout.tsx";
import { routes, type Webhook } from "./api.ts";
import { t, tn } from "./words.ts";

/** Milliseconds until it is asked for again. */
const POLL_MS = 15_000;

/** Every webhook, and the event bus. */
export function Webhooks() {
  const { data, failure, reload } = useLoaded(routes.webhooks, POLL_MS, []);
  return (
    <section aria-labelledby="webhooks">
      <h2 id="webhooks">{t("webhooks")}</h2>
      {data === null && failure === null && <Loading />}
      {failure !== null && <Problem problem={failure} retry={() => void reload()} />}
      {data !== null && (data.webhooks.length === 0 ? <p class="hint">{t("webhooks-none")}</p> : (
        <div class="card">
          <div class="scroll" tabIndex={0} role="group" aria-labelledby="webhooks">
            <table class="named">
              <thead><tr>
                <th scope="col">{t("webhook")}</th><th scope="col" class="number">{t("webhook-behind")}</th>
                <th scope="col" class="number">{t("webhook-waiting")}</th><th scope="col">{t("webhook-state")}</th>
              </tr></thead>
              <tbody>{data.webhooks.map((webhook) => (
                <tr key={webhook.webhook}>
                  <th scope="row">{webhook.webhook}<br /><span class="hint url">{webhook.url ?? "EventBridge"}</span></th>
                  <td class="number">{number(webhook.records_behind)}</td><td class="number">{number(webhook.orders_waiting)}</td>
                  <td>{stateOf(webhook)}</td>
                </tr>
              ))}</tbody>
            </table>
          </div>
          <p class="hint">{t("webhooks-hint")}</p>
        </div>
      ))}
    </section>
  );
}

/** What a webhook does, in words. */
function stateOf({ failing_since, tried_again, given_up, orders_waiting }: Webhook): string {
  if (failing_since !== undefined) {
    const since = shortDateTime(failing_since);
    return tried_again === undefined ? t("webhook-given-up", { since }) : t("webhook-failing", { since, next: shortDateTime(tried_again) });
  }
  if (given_up > 0) {
    return tn("webhook-orders-given-up", given_up);
  }
  return orders_waiting > 0 ? t("webhook-again") : t("webhook-well");
}
