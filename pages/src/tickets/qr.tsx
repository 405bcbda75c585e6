/** The QR picture of a code, drawn as one path. */
import { useMemo } from "preact/hooks";
import qrcode from "qrcode-generator";

/** White modules around the picture, as scanners want them. */
const QUIET = 4;

/** A picture: how many modules it is wide, and the path of the dark ones. */
export interface Picture {
  readonly width: number;
  readonly path: string;
}

/** What codes may be written in with fewer modules than as bytes. */
const ALPHANUMERIC = /^[0-9A-Z $%*+\-./:]+$/;

/** Draws a code: dark modules of a row that lie side by side are one rectangle. */
export function pictureOf(code: string): Picture {
  const picture = qrcode(0, "M");
  picture.addData(code, ALPHANUMERIC.test(code) ? "Alphanumeric" : "Byte");
  picture.make();
  const modules = picture.getModuleCount();
  let path = "";
  for (let row = 0; row < modules; row += 1) {
    for (let column = 0; column < modules; column += 1) {
      let end = column;
      while (end < modules && picture.isDark(row, end)) end += 1;
      if (end > column) {
        path += `M${column + QUIET} ${row + QUIET}h${end - column}v1h-${end - column}z`;
        column = end;
      }
    }
  }
  return { width: modules + 2 * QUIET, path };
}

/** The picture on the page: black on white in the dark too, because scanners want it so. */
export function Qr({ code, label }: { readonly code: string; readonly label: string }) {
  const { width, path } = useMemo(() => pictureOf(code), [code]);
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${width} ${width}`} shapeRendering="crispEdges">
      <rect width={width} height={width} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
