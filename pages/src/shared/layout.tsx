/** What is around every page: skip link, header with languages and who is signed in, the main part, the live region. */
import { Component, render, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import "./styles.css";
import { useSession } from "./hooks.ts";
import { href, language, LANGUAGES } from "./language.ts";
import { announce, openLiveRegion } from "./live.ts";
import { askTabs, shareSessions, type Role } from "./session.ts";
import { asksAlways, isSharedComputer, keepSharedComputer, prepareSignIn, signIn, SignInError, signOutAtIssuer } from "./sign-in.ts";
import { shared } from "./text.ts";
import type { OnsaleProblem } from "./api.ts";

const { t } = shared;

interface PageProps {
  /** Title of the page: its first heading, and the title of the tab. */
  readonly title: string;
  /** Whose session the header shows: none on pages where nobody signs in. */
  readonly role?: Role | null;
  /** True if the page has a first heading of its own. */
  readonly ownHeading?: boolean;
  /** What stands above the main part, such as an order that is held. */
  readonly banner?: ComponentChildren;
  readonly children: ComponentChildren;
}

let tabName: string | null = null;

/** Calls the tab otherwise than by the first heading: by what the page is about. */
export function useTab(name: string): void {
  useEffect(() => {
    tabName = name;
    document.title = `${name} · ${t("brand")}`;
    return () => {
      tabName = null;
    };
  }, [name]);
}

/** A page. */
export function Page({ title, role = "buyers", ownHeading = false, banner, children }: PageProps) {
  useEffect(() => {
    document.title = `${tabName ?? title} · ${t("brand")}`;
  }, [title]);
  const [goesOn, setGoesOn] = useState(false);
  return (
    <>
      <a class="skip" href="#main">{t("skip")}</a>
      <header class="top">
        <a class="brand" href={href(role === "operators" ? "/operator" : "/")}>{t("brand")}</a>
        <nav aria-label={t("nav")}>
          {role === "buyers" && <a href={href("/my/orders")}>{t("my-orders")}</a>}
          {role === "operators" && <a href={href("/operator/desk")}>{t("desk")}</a>}
        </nav>
        {role !== null && <WhoIsSignedIn role={role} onSignOut={setGoesOn} />}
        <Languages />
      </header>
      {banner}
      <main id="main" tabIndex={-1}>
        {!ownHeading && <h1>{title}</h1>}
        {goesOn && <p class="notice warn">{t("sign-out-goes-on")}</p>}
        {children}
      </main>
    </>
  );
}

function Languages() {
  return (
    <ul class="languages" aria-label={t("language")}>
      {LANGUAGES.map(({ language: other, name, tag }) => (
        <li key={other}>
          <a href={href(location.pathname + location.search, other)} lang={tag} hreflang={tag} aria-current={other === language ? "true" : undefined}>{name}</a>
        </li>
      ))}
    </ul>
  );
}

/** `onSignOut` is told whether the issuer's session goes on after somebody has signed out here. */
function WhoIsSignedIn({ role, onSignOut }: { readonly role: Role; readonly onSignOut: (goesOn: boolean) => void }) {
  const session = useSession(role);
  useEffect(() => {
    if (session !== null) onSignOut(false);
  }, [session]);
  const leave = async () => {
    if ((await signOutAtIssuer(role)) === "goes-on") {
      onSignOut(true);
      announce(t("sign-out-goes-on"));
    }
  };
  if (session === null) {
    return <div class="who"><SignInButton role={role} quiet /></div>;
  }
  return (
    <div class="who">
      {session.name !== null && <span class="name">{session.name}</span>}
      <button type="button" class="quiet" onClick={() => void leave()}>{t("sign-out")}</button>
    </div>
  );
}

/** Said once for a browser: whoever signs in here is asked who they are, also while somebody is signed in at the issuer. */
function SharedComputer() {
  const [isShared, setIsShared] = useState(isSharedComputer);
  const choose = (chosen: boolean) => {
    keepSharedComputer(chosen);
    setIsShared(chosen);
  };
  return (
    <label class="hint shared-computer">
      <input type="checkbox" checked={isShared} onChange={(event) => choose(event.currentTarget.checked)} />
      {t("shared-computer")}
    </label>
  );
}

interface SignInButtonProps {
  readonly role: Role;
  /** True where it is not the one thing to do. */
  readonly quiet?: boolean;
  readonly label?: string;
  /** Where to go afterwards; this page unless set. */
  readonly returnTo?: string;
}

/** Leaves for the issuer, and says so if that fails. */
export function SignInButton({ role, quiet = false, label = t("sign-in"), returnTo }: SignInButtonProps) {
  const [state, setState] = useState<"ready" | "leaving" | "sign-in-failed" | "sign-in-storage">("ready");
  useEffect(prepareSignIn, []);
  const leave = async () => {
    setState("leaving");
    try {
      await signIn(role, returnTo);
    } catch (thrown) {
      const why = thrown instanceof SignInError && thrown.reason === "storage" ? "sign-in-storage" : "sign-in-failed";
      setState(why);
      announce(t(why));
    }
  };
  return (
    <>
      <button type="button" class={quiet ? "quiet" : "primary"} disabled={state === "leaving"} onClick={() => void leave()}>{label}</button>
      {!quiet && !asksAlways(role, location.pathname) && <SharedComputer />}
      {state !== "ready" && state !== "leaving" && <p class="problem">{t(state)}</p>}
    </>
  );
}

/** What went wrong, in words; with a button to try again where that may help. */
export function Problem({ problem, retry, text }: {
  readonly problem: OnsaleProblem; readonly retry?: () => void; readonly text?: string | undefined;
}) {
  return (
    <div class="problem" role="alert">
      <p>{text ?? problemText(problem)}</p>
      {retry !== undefined && <button type="button" onClick={retry}>{t("try-again")}</button>}
    </div>
  );
}

/** The words for a problem that a page has no words of its own for. */
export function problemText(problem: OnsaleProblem): string {
  switch (problem.slug) {
    case "no-answer": return t("problem.no-answer");
    case "not-authenticated": return t("problem.not-authenticated");
    case "not-permitted": return t("problem.not-permitted");
    case "not-found": return t("problem.not-found");
    case "too-many-requests": return t("problem.too-many-requests");
    case "unavailable": case "not-loaded": case "internal": return t("problem.unavailable");
    case "outcome-unknown": return t("problem.outcome-unknown");
    default: return t("problem.other", { detail: problem.message });
  }
}

/** Shows that something is being loaded. */
export const Loading = () => <p class="loading" role="status">{t("loading")}</p>;

/** A page whose code failed says so, instead of being empty. */
class Boundary extends Component<{ children: ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };
  static override getDerivedStateFromError = () => ({ failed: true });
  override componentDidCatch(error: unknown) {
    console.error(error);
  }
  override render() {
    return this.state.failed
      ? <main id="main"><h1>{t("failed")}</h1><p><a href={location.href}>{t("reload")}</a></p></main>
      : this.props.children;
  }
}

interface StartOptions {
  /** Whose session the page has: another tab is asked for it. */
  readonly role?: Role | null;
  /** True of a page that shows nothing without a session: it is not shown before another tab could answer. */
  readonly needsSession?: boolean;
}

/** Renders a page. */
export async function start(page: ComponentChildren, { role = "buyers", needsSession = false }: StartOptions = {}): Promise<void> {
  openLiveRegion();
  shareSessions(role);
  const asked = role === null ? null : askTabs(role);
  if (needsSession) {
    await asked;
  }
  const root = document.getElementById("app");
  if (root !== null) {
    render(<Boundary>{page}</Boundary>, root);
  }
}
