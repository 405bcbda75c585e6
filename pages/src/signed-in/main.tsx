/** `/signed-in`: where the issuer sends people back to. Goes on to the page where they wanted to sign in, or says that they are signed out. */
import { useEffect, useState } from "preact/hooks";

import en from "../i18n/signed-in.en.json";
import zh from "../i18n/signed-in.zh.json";
import { Page, start } from "../shared/layout.tsx";
import { href } from "../shared/language.ts";
import { completeSignIn, completeSignOut, SignInError } from "../shared/sign-in.ts";
import { texts } from "../shared/text.ts";

const { t } = texts(en, zh);

/** Says that the issuer has ended its session. Loaded again, it says the same. */
function SignedOut({ from }: { readonly from: string }) {
  return (
    <Page title={t("out.title")} role={null}>
      <p role="status">{t("out")}</p>
      <p><a class="button" href={from}>{t("out.back")}</a></p>
    </Page>
  );
}

function SignedIn() {
  const [failure, setFailure] = useState<SignInError["reason"] | null>(null);
  useEffect(() => {
    const address = new URL(location.href);
    // The code is of use once, and need not stay in the history.
    history.replaceState(null, "", href("/signed-in"));
    completeSignIn(address).then(
      (returnTo) => location.replace(returnTo),
      (thrown: unknown) => setFailure(thrown instanceof SignInError ? thrown.reason : "issuer"),
    );
  }, []);
  return (
    <Page title={t("title")} role={null}>
      {failure === null
        ? <p role="status">{t("wait")}</p>
        : <div class="problem" role="alert"><p>{t(`failed.${failure}`)}</p><p><a href={href("/")}>{t("start")}</a></p></div>}
    </Page>
  );
}

const from = completeSignOut(new URL(location.href));
void start(from === null ? <SignedIn /> : <SignedOut from={from} />, { role: null });
