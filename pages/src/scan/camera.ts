/** The camera: pictures are read by the browser's own detector where it has one, else by a library loaded only then. */

/** What reads codes out of a picture: the shape of BarcodeDetector, which the library has too. */
interface Detector {
  detect(source: HTMLVideoElement): Promise<readonly { readonly rawValue: string }[]>;
}
interface DetectorClass {
  new (options: { formats: string[] }): Detector;
  getSupportedFormats(): Promise<readonly string[]>;
}

const FORMAT = "qr_code";
/** Milliseconds between looks at the picture. */
const LOOK_MS = 120;
/** Milliseconds for which a code that is still in the picture is not read again. */
const SAME_MS = 3_000;

async function detector(): Promise<Detector> {
  const own = (globalThis as { BarcodeDetector?: DetectorClass }).BarcodeDetector;
  const formats: readonly string[] = own === undefined ? [] : await own.getSupportedFormats().catch(() => []);
  const made = own !== undefined && formats.includes(FORMAT) ? own : ((await import("qr/decode.js")).BarcodeDetector as unknown as DetectorClass);
  return new made({ formats: [FORMAT] });
}

/** Says whether a code is new: not the one that was read a moment ago. */
export function unlessSame(nowMs: () => number): (code: string) => boolean {
  let last = { code: "", atMs: Number.NEGATIVE_INFINITY };
  return (code) => {
    const isNew = code !== last.code || nowMs() - last.atMs > SAME_MS;
    last = { code, atMs: nowMs() };
    return isNew;
  };
}

/**
 * Shows the camera in an element and calls `onCode` with each code that it sees, until the signal ends it.
 * Throws if there is no camera, or it may not be used.
 */
export async function watchCamera(video: HTMLVideoElement, onCode: (code: string) => void, signal: AbortSignal): Promise<void> {
  const [reader, stream] = await Promise.all([detector(), navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false })]);
  const stop = () => stream.getTracks().forEach((track) => track.stop());
  if (signal.aborted) {
    stop();
    return;
  }
  video.srcObject = stream;
  await video.play();
  const isNew = unlessSame(() => performance.now());
  let timer: ReturnType<typeof setTimeout>;
  const look = async () => {
    if (video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA && !document.hidden) {
      const found = await reader.detect(video).catch(() => []);
      found.map(({ rawValue }) => rawValue).filter((code) => !signal.aborted && isNew(code)).forEach(onCode);
    }
    if (!signal.aborted) {
      timer = setTimeout(() => void look(), LOOK_MS);
    }
  };
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    video.srcObject = null;
    stop();
  }, { once: true });
  void look();
}
