/** `/scan`: lets tickets in at a door, without a network too. */
import "./scan.css";
import { useCallback, useEffect, useState } from "preact/hooks";

import { allows } from "../operator/api.ts";
import { clock } from "../shared/clock.ts";
import { useSession } from "../shared/hooks.ts";
import { Loading, Page, SignInButton, start } from "../shared/layout.tsx";
import { openWithoutNetwork } from "../shared/offline.ts";
import { Setup } from "./setup.tsx";
import { DoorStore, type Door } from "./store.ts";
import { DoorView } from "./view.tsx";
import { t } from "./words.ts";

/** The database, opened once: null while it opens, `no` where the browser keeps nothing. */
function useStore(): DoorStore | "no" | null {
  const [store, setStore] = useState<DoorStore | "no" | null>(null);
  useEffect(() => {
    DoorStore.open().then(async (opened) => {
      clock.assume((await opened.offsetMs()) ?? 0);
      setStore(opened);
    }).catch(() => setStore("no"));
  }, []);
  return store;
}

function Scan() {
  const store = useStore();
  const [isOffline, setOffline] = useState<"yes" | "no" | null>(null);
  const [door, setDoor] = useState<Door | null | undefined>(undefined);
  useEffect(() => void openWithoutNetwork("/scan").then(setOffline), []);
  useEffect(() => {
    if (store !== null && store !== "no") {
      void store.door().then(setDoor, () => setDoor(null));
    }
  }, [store]);
  const choose = useCallback(async (next: Door | null) => {
    if (store !== null && store !== "no") await store.keepDoor(next);
    // A browser that is short of space takes ours last then.
    if (next !== null) void navigator.storage?.persist?.().catch(() => false);
    setDoor(next);
  }, [store]);
  if (store === "no") {
    return <p class="problem" role="alert">{t("no-storage")}</p>;
  }
  if (store === null || door === undefined) {
    return <Loading />;
  }
  return door === null
    ? <ForDoors><Setup store={store} onChosen={choose} /></ForDoors>
    : <DoorView store={store} door={door} opensOffline={isOffline} onLeave={() => choose(null)} />;
}

/** A door is set up by whoever may scan. Once it is, it goes on without a session: nobody outside waits for a sign-in. */
function ForDoors({ children }: { readonly children: preact.ComponentChildren }) {
  const session = useSession("operators");
  if (session === null) {
    return <div class="card"><p>{t("sign-in-first")}</p><SignInButton role="operators" /></div>;
  }
  return allows(session.scope, "scan") ? <>{children}</> : <p class="notice warn">{t("no-right")}</p>;
}

void start(<Page title={t("title")} role="operators"><Scan /></Page>, { role: "operators" });
