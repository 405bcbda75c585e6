/** The camera on the page: off until somebody wants it. */
import { useEffect, useRef, useState } from "preact/hooks";

import { announce } from "../shared/live.ts";
import { watchCamera } from "./camera.ts";
import { t } from "./words.ts";

/** The button of the camera, and its picture. */
export function CameraPart({ onCode }: { readonly onCode: (code: string) => void }) {
  const [state, setState] = useState<"off" | "on" | "failed">("off");
  const video = useRef<HTMLVideoElement>(null);
  const handler = useRef(onCode);
  handler.current = onCode;
  useEffect(() => {
    const element = video.current;
    if (state !== "on" || element === null) {
      return;
    }
    const stop = new AbortController();
    watchCamera(element, (code) => handler.current(code), stop.signal).catch(() => {
      if (!stop.signal.aborted) {
        setState("failed");
        announce(t("camera-failed"));
      }
    });
    return () => stop.abort();
  }, [state]);
  if (navigator.mediaDevices === undefined) {
    return null;
  }
  return (
    <div class="camera">
      <button type="button" onClick={() => setState((before) => (before === "on" ? "off" : "on"))}>{state === "on" ? t("camera-stop") : t("camera-start")}</button>
      {state === "on" && <video ref={video} muted playsInline aria-label={t("camera-picture")} />}
      {state === "failed" && <p class="problem">{t("camera-failed")}</p>}
    </div>
  );
}
