/** A payment's code as a picture to keep: a phone cannot scan its own screen. */
import { saveFile } from "../shared/save.ts";
import { pictureOf } from "../tickets/qr.tsx";

/** Pixels that a picture has at least: scanners of apps read it from the album. */
const LEAST_PIXELS = 720;

/** Pixels of a module, so that all of them are equally large. */
export const modulePixels = (modules: number): number => Math.max(1, Math.ceil(LEAST_PIXELS / modules));

/** True on a device that is held in the hand and touched. */
export const isPhone = (): boolean => matchMedia("(hover: none) and (pointer: coarse)").matches;

/** Saves a code as a PNG file. @throws {Error} where the browser draws none. */
export async function savePicture(code: string, name: string): Promise<void> {
  const { width, path } = pictureOf(code);
  const scale = modulePixels(width);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = width * scale;
  const context = canvas.getContext("2d");
  const blob = await new Promise<Blob | null>((resolve) => {
    if (context === null) return resolve(null);
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.scale(scale, scale);
    context.fillStyle = "#000";
    context.fill(new Path2D(path));
    canvas.toBlob(resolve, "image/png");
  });
  if (blob === null) throw new Error("no picture");
  saveFile(blob, name);
}
