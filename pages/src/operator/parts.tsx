/** Parts that operators' pages share: who may what, and how old a figure is. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { words } from "../order/words.ts";
import { clockTime, duration } from "../shared/format.ts";
import { useNow, useSession } from "../shared/hooks.ts";
import { locale } from "../shared/language.ts";
import { SignInButton } from "../shared/layout.tsx";
import { announce } from "../shared/live.ts";
import { allows, type Right } from "./api.ts";
import { t } from "./words.ts";

/** Milliseconds after which figures count as old. */
const STALE_MS = 15_000;

/** How old figures are, by the server's clock. */
export function Age({ atMs }: { readonly atMs: number }) {
  const now = useNow(1_000);
  const ageMs = Math.max(0, now - atMs);
  return (
    <span class={ageMs > STALE_MS ? "age stale" : "age"}>
      {t("as-of", { time: clockTime(atMs) })} ({ageMs < 1_000 ? t("age-now") : t("age", { age: duration(ageMs) })})
    </span>
  );
}

/** Says that figures are old, once they are. */
export function Stale({ atMs }: { readonly atMs: number }) {
  const now = useNow(1_000);
  const isStale = now - atMs > STALE_MS;
  const text = t("age-stale", { age: duration(now - atMs) });
  useEffect(() => {
    if (isStale) announce(text);
  }, [isStale]);
  return isStale ? <p class="notice warn">{text}</p> : null;
}

/**
 * What is shown to operators only. Without a session, how to get one; under a first heading if one is given, for what is
 * shown to operators has its own.
 */
export function ForOperators({ heading, children }: { readonly heading?: string; readonly children: ComponentChildren }) {
  const session = useSession("operators");
  const hadSession = useRef(false);
  hadSession.current ||= session !== null;
  const title = heading !== undefined && <h1>{heading}</h1>;
  if (session === null) {
    return (
      <>{title}<div class="card">
        <p>{hadSession.current ? words.t("sign-in-ended") : t("sign-in-first")}</p>
        <SignInButton role="operators" returnTo={location.pathname + location.search + location.hash} />
      </div></>
    );
  }
  return allows(session.scope, "watch") ? <>{children}</> : <>{title}<p class="notice warn">{t("no-right.watch")}</p></>;
}

const RIGHTS: readonly Right[] = ["watch", "operate", "refund", "scan"];

/** What whoever is signed in may do. */
export function Rights() {
  const session = useSession("operators");
  const rights = session === null ? [] : RIGHTS.filter((right) => allows(session.scope, right)).map((right) => t(`right.${right}`));
  return session === null ? null : <p class="hint">{t("rights", { rights: rights.length === 0 ? t("right.none") : new Intl.ListFormat(locale, { type: "unit" }).format(rights) })}</p>;
}
