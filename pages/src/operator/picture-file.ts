/**
 * Pictures of an operator, made anew before they are sent: decoded, made smaller and written as JPEG, so that nothing of the
 * file but what is seen leaves the browser. The server decodes none.
 */
import type { MadePicture } from "./event-file.ts";

/** The most pixels of a picture that is decoded. */
export const MOST_PIXELS = 50_000_000;
/** The longest side of a picture that is sent. */
const LONGEST = 1_600;
/** The most bytes of a picture that the API takes. */
export const MOST_BYTES = 256 * 1024;
/** Qualities that are tried, the best one first. */
const QUALITIES = [0.85, 0.75, 0.65, 0.55, 0.45];
/** What a picture is made smaller by, if it is too large in all of them. */
const SMALLER = 0.75;

/** Why a picture is not taken. */
export class NotAPicture extends Error {
  constructor(readonly reason: "vector" | "pixels" | "unreadable") {
    super(reason);
  }
}

/** Width and height. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The size that the header of a PNG, JPEG, GIF, WebP or AVIF file says; null if it says none. */
export function headerSize(bytes: Uint8Array): Size | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const name = (at: number, length: number) => String.fromCharCode(...bytes.subarray(at, at + length));
  try {
    if (name(1, 3) === "PNG") return { width: view.getUint32(16), height: view.getUint32(20) };
    if (name(0, 3) === "GIF") return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
    if (name(0, 4) === "RIFF" && name(8, 4) === "WEBP") return webpSize(view, name(12, 4));
    if (name(4, 4) === "ftyp" && AVIF_BRANDS.includes(name(8, 4))) return avifSize(view, name);
    return view.getUint16(0) === 0xffd8 ? jpegSize(view) : null;
  } catch (thrown) {
    if (thrown instanceof RangeError) return null;
    throw thrown;
  }
}

function webpSize(view: DataView, kind: string): Size | null {
  const three = (at: number) => view.getUint16(at, true) + (view.getUint8(at + 2) << 16);
  switch (kind) {
    case "VP8X": return { width: three(24) + 1, height: three(27) + 1 };
    case "VP8 ": return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
    case "VP8L": {
      const bits = view.getUint32(21, true);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    default: return null;
  }
}

/** The brands that an AVIF file begins with: a picture, or a row of pictures. */
const AVIF_BRANDS = ["avif", "avis"];
/** The boxes in which AVIF says the size of its pictures, the outermost first, and the bytes before what each contains. */
const AVIF_PATH = [["meta", 12], ["iprp", 8], ["ipco", 8], ["ispe", 12]] as const;

/** The largest size that an AVIF file says of a picture in it: its picture may be made of parts, and have a thumbnail. */
function avifSize(view: DataView, name: (at: number, length: number) => string): Size | null {
  let largest: Size | null = null;
  const look = (from: number, end: number, depth: number): void => {
    const [wanted, before] = AVIF_PATH[depth] ?? AVIF_PATH[0];
    for (let at = from; at + 8 <= end;) {
      const said = view.getUint32(at);
      // 0: to the end. Nothing that a header needs is longer than 4 GiB, for which 1 stands.
      const next = said === 0 ? end : at + said;
      if (next < at + 8 || next > end) return;
      if (name(at + 4, 4) === wanted && depth < AVIF_PATH.length - 1) {
        look(at + before, next, depth + 1);
      } else if (name(at + 4, 4) === wanted) {
        const size = { width: view.getUint32(at + before), height: view.getUint32(at + before + 4) };
        if (largest === null || size.width * size.height > largest.width * largest.height) largest = size;
      }
      at = next;
    }
  };
  look(0, view.byteLength, 0);
  return largest;
}

function jpegSize(view: DataView): Size | null {
  for (let at = 2; at + 9 < view.byteLength;) {
    if (view.getUint8(at) !== 0xff) return null;
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at += 1;
    } else if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    } else {
      at += 2 + view.getUint16(at + 2);
    }
  }
  return null;
}

/** True of SVG, which is a program and no picture, whatever its file is called. */
export const isVector = (name: string, type: string, bytes: Uint8Array): boolean =>
  /svg/i.test(type) || /\.svgz?$/i.test(name) || /^(?:\ufeff|\s)*<(?:[?!]|svg)/i.test(new TextDecoder().decode(bytes.subarray(0, 256)));

/** A size whose longest side is at most so long. */
export function fitted({ width, height }: Size, longest = LONGEST): Size {
  const scale = Math.min(1, longest / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}

/** @throws {NotAPicture} if there is nothing in it, or more than is decoded. */
function checkPixels({ width, height }: Size): void {
  if (width === 0 || height === 0) throw new NotAPicture("unreadable");
  if (width * height > MOST_PIXELS) throw new NotAPicture("pixels");
}

async function jpegOf(bitmap: ImageBitmap, { width, height }: Size, quality: number): Promise<Uint8Array<ArrayBuffer>> {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  if (context === null) throw new NotAPicture("unreadable");
  // JPEG has no transparency.
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/jpeg", quality));
  if (blob === null || blob.type !== "image/jpeg") throw new NotAPicture("unreadable");
  return new Uint8Array(await blob.arrayBuffer());
}

const hex = (bytes: ArrayBuffer): string => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Makes a picture anew. @throws {NotAPicture} of what is none. */
export async function makePicture(file: File): Promise<MadePicture> {
  const original = new Uint8Array(await file.arrayBuffer());
  if (isVector(file.name, file.type, original)) throw new NotAPicture("vector");
  // What says no size is not decoded: it may be larger than the memory.
  const said = headerSize(original);
  if (said === null) throw new NotAPicture("unreadable");
  checkPixels(said);
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new NotAPicture("unreadable");
  });
  try {
    checkPixels(bitmap);
    for (let size = fitted(bitmap); ; size = fitted(size, Math.max(size.width, size.height) * SMALLER)) {
      for (const quality of QUALITIES) {
        const bytes = await jpegOf(bitmap, size, quality);
        if (bytes.length <= MOST_BYTES) return { ...size, bytes, sha256: hex(await crypto.subtle.digest("SHA-256", bytes)) };
      }
    }
  } finally {
    bitmap.close();
  }
}

/** Bytes in base64. */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
