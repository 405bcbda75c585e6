/** `404.html`: whatever is no page. */
import en from "../i18n/404.en.json";
import zh from "../i18n/404.zh.json";
import { Page, start } from "../shared/layout.tsx";
import { href } from "../shared/language.ts";
import { texts } from "../shared/text.ts";

const { t } = texts(en, zh);

void start(
  <Page title={t("title")}>
    <p>{t("text")}</p>
    <p><a class="button primary" href={href("/")}>{t("start")}</a></p>
  </Page>,
);
