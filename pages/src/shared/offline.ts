/** The service worker: with it a page opens without a network. Its scope is that page and no other. */
import { ownScript } from "./trusted.ts";

/** Registers it, and says whether the page will open without a network: `no` where the browser has no such thing. */
export async function openWithoutNetwork(scope: "/scan" | "/my/tickets/"): Promise<"yes" | "no"> {
  if (!("serviceWorker" in navigator)) {
    return "no";
  }
  const registered = navigator.serviceWorker.register(ownScript("/sw.js"), { scope, updateViaCache: "none" }).then(isActive);
  if (navigator.serviceWorker.controller !== null) {
    // There is one already; whether there is a newer one, it asks by itself, and without a network in vain.
    registered.catch(() => {});
    return "yes";
  }
  return registered.then(() => "yes" as const, () => "no" as const);
}

function isActive(registration: ServiceWorkerRegistration): Promise<void> {
  const worker = registration.active ?? registration.waiting ?? registration.installing;
  if (worker === null || worker.state === "activated") {
    return Promise.resolve();
  }
  return new Promise((resolve, reject) => {
    worker.addEventListener("statechange", () => {
      if (worker.state === "activated") resolve();
      if (worker.state === "redundant") reject(new Error("the worker could not keep the page's files"));
    });
  });
}
