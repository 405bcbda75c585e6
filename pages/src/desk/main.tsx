/** `/operator/desk`: find orders, one order (`?order=`), and the export of a sale. */
import "../operator/operator.css";
import "./desk.css";
import { Page, start } from "../shared/layout.tsx";
import { ForOperators } from "../operator/parts.tsx";
import { Desk } from "./desk.tsx";
import { OrderView } from "./order.tsx";
import { t } from "./words.ts";

const query = new URLSearchParams(location.search);
const order = query.get("order");

const page = order !== null && /^\d{1,19}$/.test(order)
  ? <Page title={t("open-order", { order })} role="operators"><ForOperators><OrderView number={order} /></ForOperators></Page>
  : <Page title={t("title")} role="operators"><ForOperators><Desk sale={query.get("sale") ?? ""} /></ForOperators></Page>;
void start(page, { role: "operators", needsSession: true });
