/** The buyer's points and growth, and the orders that gave them. */
import { buyer, reply, type Schemas } from "../shared/api.ts";
import { number } from "../shared/format.ts";
import { useLoaded } from "../shared/hooks.ts";
import { t } from "./words.ts";

/** Orders that are shown. */
const SHOWN = 10;

/** Nothing for a buyer to whom no order gave any. Where this cannot be loaded it is left out, as wallets are. */
export function Points() {
  const { data } = useLoaded(() => reply(buyer.GET("/points")), null, []);
  return data && data.orders.length > 0 ? <Statement {...data} /> : null;
}

function Statement({ points, growth, orders }: Schemas["PointsReply"]) {
  return (
    <section aria-labelledby="points">
      <h2 id="points">{t("points.title")}</h2>
      <div class="card scroll">
        <p>{t("points.has", { points: number(points), growth: number(growth) })}</p>
        <table class="wallet">
          <thead><tr>
            <th scope="col">{t("points.order")}</th><th scope="col" class="number">{t("points.points")}</th><th scope="col" class="number">{t("points.growth")}</th>
          </tr></thead>
          <tbody>{orders.slice(0, SHOWN).map(({ order, ...given }) => (
            <tr key={order}>
              <th scope="row"><a href={`#order-${order}`}>{order}</a></th>
              <td class="number">{number(given.points)}</td>
              <td class="number">{number(given.growth)}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
    </section>
  );
}
