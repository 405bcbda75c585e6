/** `/operator`: a list of sales, one sale live (`?sale=`), and publishing (`?publish`). */
import "./operator.css";
import { Page, start } from "../shared/layout.tsx";
import { Home } from "./home.tsx";
import { Live } from "./live.tsx";
import { ForOperators } from "./parts.tsx";
import { Publish } from "./publish.tsx";
import { t } from "./words.ts";

const query = new URLSearchParams(location.search);
const sale = query.get("sale");

function Operator() {
  if (sale !== null && sale !== "") {
    return <Page title={sale} role="operators" ownHeading><ForOperators heading={sale}><Live sale={sale} /></ForOperators></Page>;
  }
  return query.has("publish")
    ? <Page title={t("publish")} role="operators"><ForOperators><Publish /></ForOperators></Page>
    : <Page title={t("title")} role="operators"><ForOperators><Home /></ForOperators></Page>;
}

void start(<Operator />, { role: "operators", needsSession: true });
