/** A stadium beyond a lake at nightfall, and lanterns over the water. */
import { clear, disc, down, fill, glow, H, linear, mix, noise, pine, poly, radial, random, rect, ridge, stars, stroke, vignette, W, within } from "./brush.js";

const SHORE = 520;

function lantern(c, x, y, size, opacity = 1) {
  glow(c, x, y, size * 3.6, "#ff9d42", 0.6 * opacity);
  within(c, { globalAlpha: opacity }, () => {
    fill(c, down(c, y - size, y + size, [0, "#ff8a3c"], [0.55, "#ffc468"], [1, "#fff3c4"]), () => {
      c.moveTo(x - size * 0.45, y - size * 0.85);
      c.quadraticCurveTo(x, y - size * 1.15, x + size * 0.45, y - size * 0.85);
      c.quadraticCurveTo(x + size * 0.92, y - size * 0.2, x + size * 0.5, y + size);
      c.lineTo(x - size * 0.5, y + size);
      c.quadraticCurveTo(x - size * 0.92, y - size * 0.2, x - size * 0.45, y - size * 0.85);
    });
    if (size > 11) {
      for (const rib of [-0.34, 0, 0.34]) stroke(c, clear("#c2521e", 0.45), size * 0.05, () => (c.moveTo(x + rib * size, y - size * 0.95), c.quadraticCurveTo(x + rib * size * 1.9, y, x + rib * size * 1.2, y + size)));
      rect(c, "#8f3f1a", x - size * 0.52, y + size * 0.94, size * 1.04, size * 0.1, size * 0.05);
      disc(c, radial(c, x, y + size * 0.6, size * 0.6, [[0, "#ffffff"], [1, clear("#fff0b0", 0)]]), x, y + size * 0.55, size * 0.5, size * 0.4);
    }
  });
}

/** What stands on the far shore, to be drawn again in the water. */
function shore(c) {
  const [hills, far] = [noise(6, 4), noise(9, 5)];
  ridge(c, "#35467f", SHORE, (x) => 92 + hills(x / 330) * 62, SHORE);
  ridge(c, "#253266", SHORE, (x) => 46 + far(x / 200 + 7) * 44, SHORE);
  const next = random(4);
  for (let at = 0; at < 90; at++) {
    const x = next() * W;
    if (x > 420 && x < 1240) continue;
    const y = SHORE - 4 - next() * 30;
    disc(c, "#ffd596", x, y, 1.6);
  }
  // The stadium: a bowl with ribs of light below a floating roof.
  const [x, y, half] = [830, SHORE, 400];
  glow(c, x, y - 150, 560, "#ffb45e", 0.62, 0.62);
  fill(c, linear(c, x - half, 0, x + half, 0, [[0, "#101736"], [0.3, "#3b3a78"], [0.55, "#6d4f8d"], [1, "#121838"]]), () => {
    c.moveTo(x - half * 0.9, y);
    c.bezierCurveTo(x - half * 1.02, y - 70, x - half * 1.06, y - 110, x - half * 1.04, y - 138);
    c.bezierCurveTo(x - half * 0.5, y - 168, x + half * 0.5, y - 168, x + half * 1.04, y - 138);
    c.bezierCurveTo(x + half * 1.06, y - 110, x + half * 1.02, y - 70, x + half * 0.9, y);
  });
  for (let rib = -24; rib <= 24; rib++) {
    const angle = (rib / 24) * (Math.PI / 2) * 0.97;
    const [top, foot] = [x + Math.sin(angle) * half * 1.03, x + Math.sin(angle) * half * 0.9];
    const y0 = y - 138 - Math.cos(angle) * 24;
    const lean = (x + Math.sin(((rib + 1.4) / 24) * (Math.PI / 2)) * half * 1.03);
    const lit = 0.35 + 0.65 * Math.cos(angle);
    stroke(c, clear(rib % 2 ? "#ffb267" : "#ff8f6b", 0.95 * lit), 2.6 * (0.4 + Math.cos(angle)), () => (c.moveTo(lean, y0), c.lineTo(foot, y)));
    if (rib < 24) stroke(c, clear("#8f7fd0", 0.5 * lit), 1.4, () => (c.moveTo(top, y0), c.lineTo(x + Math.sin(((rib + 1) / 24) * (Math.PI / 2)) * half * 0.9, y)));
  }
  for (const [level, opacity] of [[34, 0.9], [82, 0.5]]) stroke(c, clear("#ffdf9e", opacity), 3, () => (c.moveTo(x - half * (0.93 + level / 900), y - level), c.bezierCurveTo(x - half * 0.5, y - level - 14, x + half * 0.5, y - level - 14, x + half * (0.93 + level / 900), y - level)));
  // The opening of the roof, seen a little from above.
  fill(c, linear(c, x - half, 0, x + half, 0, [[0, "#2a2f63"], [0.5, "#8d7fb8"], [1, "#2a2f63"]]), () => c.ellipse(x, y - 150, half * 1.05, 40, 0, 0, Math.PI * 2));
  fill(c, down(c, y - 190, y - 126, [0, "#fff3cf"], [0.6, "#ffb566"], [1, "#c25a4a"]), () => c.ellipse(x, y - 153, half * 0.74, 22, 0, 0, Math.PI * 2));
  glow(c, x, y - 156, 330, "#fff0c8", 0.85, 0.24);
  for (let mast = -4; mast <= 4; mast++) {
    const [mx, my] = [x + mast * half * 0.24, y - 150 - Math.sqrt(1 - (mast / 4.6) ** 2) * 36];
    stroke(c, "#c9b8e0", 2.4, () => (c.moveTo(mx, my), c.lineTo(mx + mast * 3, my - 62)));
    stroke(c, clear("#c9b8e0", 0.5), 1, () => (c.moveTo(mx + mast * 3, my - 62), c.lineTo(mx - 34, my + 4), c.moveTo(mx + mast * 3, my - 62), c.lineTo(mx + 34, my + 4)));
    disc(c, "#ffffff", mx + mast * 3, my - 63, 3);
    glow(c, mx + mast * 3, my - 63, 34, "#fff0cc", 0.75);
  }
  for (let tree = 0; tree < 74; tree++) {
    const tx = next() * W;
    const r = 9 + next() * 13;
    if (tx > 470 && tx < 1190 && next() < 0.75) continue;
    disc(c, next() < 0.5 ? "#141c45" : "#1a2450", tx, SHORE - r * 0.7, r, r * 1.1);
  }
  rect(c, "#121a40", 0, SHORE - 8, W, 8);
  for (let lamp = 0; lamp < 30; lamp++) disc(c, "#ffe0a6", 400 + lamp * 29, SHORE - 8, 2);
}

export default function draw(c) {
  rect(c, down(c, 0, SHORE, [0, "#0b1238"], [0.38, "#27336f"], [0.68, "#6a5590"], [0.88, "#d98278"], [1, "#ffc18a"]), 0, 0, W, H);
  stars(c, 12, 210, 0, 330);
  shore(c);
  // The lake.
  rect(c, down(c, SHORE, H, [0, "#d08a86"], [0.1, "#6b5a93"], [0.45, "#22306a"], [1, "#0a1034"]), 0, SHORE, W, H - SHORE);
  within(c, { globalAlpha: 0.62, filter: "blur(3px)" }, () => {
    c.beginPath();
    c.rect(0, SHORE, W, H - SHORE);
    c.clip();
    c.translate(0, SHORE * 2);
    c.scale(1, -1);
    shore(c);
  });
  rect(c, down(c, SHORE, H, [0, clear("#16205a", 0.05)], [0.5, clear("#101a4c", 0.55)], [1, clear("#080d2c", 0.9)]), 0, SHORE, W, H - SHORE);
  const next = random(8);
  for (let wave = 0; wave < 130; wave++) {
    const part = next() ** 1.3;
    const y = SHORE + 6 + part * 330;
    const wide = 40 + part * 180 * next();
    const lit = Math.max(0, 1 - Math.abs((next() - 0.5) * 2));
    rect(c, clear(lit > 0.4 ? "#ffbf85" : "#8f9ae0", 0.06 + 0.16 * lit * (1 - part)), mix(830 + (next() - 0.5) * 700, next() * W, part) - wide / 2, y, wide, 1.5 + part * 2, 2);
  }
  // Lanterns in the air, the far ones first, and some on the lake.
  const air = Array.from({ length: 64 }, () => ({ x: next() * W, y: 20 + next() * 440, size: 4 + next() ** 3.2 * 34 })).sort((a, b) => a.size - b.size);
  for (const { x, y, size } of air) if (size < 10 || y < 330) lantern(c, x, size < 7 ? 90 + y * 0.72 : y * 0.86, size, 0.55 + Math.min(0.45, size / 24));
  for (const [x, y, size] of [[250, 592, 9], [520, 606, 8], [700, 640, 12], [1010, 612, 10], [1180, 668, 17], [900, 706, 20], [420, 700, 18], [1420, 640, 13], [640, 772, 25]]) {
    for (let at = 0; at < 6; at++) rect(c, clear("#ffb45e", 0.34 - at * 0.05), x - size * (0.9 - at * 0.07) + (next() - 0.5) * 6, y + size + 4 + at * size * 0.5, size * (1.8 - at * 0.14), size * 0.17, 4);
    lantern(c, x, y, size);
  }
  lantern(c, 178, 150, 42), lantern(c, 1392, 236, 52), lantern(c, 1130, 92, 30), lantern(c, 486, 92, 26);
  // A jetty with two who watch.
  const dark = "#060a22";
  poly(c, linear(c, 0, 760, 0, 900, [[0, "#3a417f"], [1, "#0c1238"]]), [-10, 838], [330, 790], [392, 796], [140, 910], [-10, 910]);
  for (let plank = 0; plank < 9; plank++) stroke(c, clear("#02040f", 0.7), 2, () => (c.moveTo(20 + plank * 40, 834 - plank * 5.6), c.lineTo(-70 + plank * 58, 910 - plank * 12)));
  for (const [x, y] of [[330, 790], [386, 800], [200, 812]]) rect(c, dark, x - 6, y - 30, 12, 90, 3);
  const sitter = (x, y, s, lean) => {
    within(c, {}, () => {
      c.translate(x, y);
      c.scale(s, s);
      c.rotate(lean);
      for (const [shift, style] of [[-2, "#ffab66"], [0, dark]]) {
        disc(c, style, shift * -1, -86 + shift, 15, 18);
        fill(c, style, () => {
          c.moveTo(-32 - shift, 6);
          c.bezierCurveTo(-38, -36 + shift, -32, -66 + shift, 0, -68 + shift);
          c.bezierCurveTo(32, -66 + shift, 36 - shift, -36, 34 - shift, 6);
        });
      }
    });
  };
  sitter(232, 806, 1, 0.05), sitter(292, 800, 0.9, -0.07);
  // Reeds and a pine.
  for (let reed = 0; reed < 60; reed++) {
    const x = 1290 + next() * 330;
    const h = 60 + next() * 150 * ((x - 1270) / 330);
    const lean = (next() - 0.6) * 44;
    stroke(c, dark, 3 + next() * 2.5, () => (c.moveTo(x, 910), c.quadraticCurveTo(x, 900 - h * 0.5, x + lean, 900 - h)));
    if (next() < 0.25) within(c, { lineCap: "round" }, () => stroke(c, "#0d1130", 9, () => (c.moveTo(x + lean * 0.8, 900 - h * 0.86), c.lineTo(x + lean, 900 - h - 8))));
  }
  pine(c, dark, 1560, 900, 520, next), pine(c, "#090e2a", 1484, 905, 330, next);
  vignette(c, 0.42, "#04061a");
}
