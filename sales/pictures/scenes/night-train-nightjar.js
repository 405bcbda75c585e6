/** A night train on a viaduct in the mountains, below the stars. */
import { clear, disc, down, fill, glow, H, linear, noise, pine, poly, random, rect, ridge, stars, stroke, vignette, W, within } from "./brush.js";

/** The height of the track. */
const track = (x) => 588 + ((x - 800) / 1600) ** 2 * 60 - (x - 800) * 0.03;

export default function draw(c) {
  rect(c, down(c, 0, 640, [0, "#050a26"], [0.35, "#101f54"], [0.7, "#2b4286"], [1, "#7d7fb4"]), 0, 0, W, H);
  // The milky way.
  within(c, { filter: "blur(22px)", globalCompositeOperation: "lighter" }, () => {
    c.translate(800, 190);
    c.rotate(-0.42);
    const next = random(9);
    for (let at = 0; at < 60; at++) disc(c, clear(["#6f7fd6", "#9a7fd0", "#c9a9d9"][at % 3], 0.06), (next() - 0.5) * 1900, (next() - 0.5) * 110, 70 + next() * 120, 22 + next() * 34);
  });
  stars(c, 41, 620, 0, 520, "#ffffff");
  const [mx, my] = [1290, 150];
  glow(c, mx, my, 330, "#bfd0ff", 0.5);
  fill(c, "#fdf4d8", () => {
    c.arc(mx, my, 54, -1.485, 2.542);
    c.arc(mx - 24, my - 14, 49, 2.0045, -0.948, true);
    c.closePath();
  });
  // Mountains with snow, in the light of the moon.
  const [high, middle, low] = [noise(12, 6, 0.55), noise(15, 6, 0.52), noise(19, 5)];
  const peaks = (x) => 150 + 130 * Math.exp(-(((x - 470) / 240) ** 2)) + 180 * Math.exp(-(((x - 1010) / 210) ** 2)) + high(x / 190) * 74;
  ridge(c, down(c, 190, 620, [0, "#8d9bd2"], [0.4, "#4a5aa0"], [1, "#33417f"]), 600, peaks);
  // Snow: the lit side of each peak.
  within(c, {}, () => {
    c.beginPath();
    c.moveTo(0, 700);
    for (let x = 0; x <= W; x += 3) c.lineTo(x, 600 - peaks(x));
    c.lineTo(W, 700);
    c.clip();
    const edge = noise(23, 3);
    for (const [px, reach, depth] of [[470, 190, 150], [1010, 230, 190], [765, 90, 60], [1370, 130, 60], [165, 120, 60]]) {
      const top = 600 - peaks(px);
      const foot = (x) => {
        const part = Math.max(0, 1 - Math.abs((x - px) / reach) ** 1.4);
        return 600 - peaks(x) + depth * part * (0.62 + 0.5 * Math.abs(((x / 46) % 2) - 1)) + edge(x / 18) * 10 * part;
      };
      const snow = (from, to, style) => fill(c, style, () => {
        c.moveTo(from, 0);
        for (let x = from; x <= to; x += 4) c.lineTo(x, foot(x));
        c.lineTo(to, 0);
      });
      snow(px - reach, px + reach, down(c, top, top + depth, [0, "#f6f8ff"], [1, "#b9c5ee"]));
      // The side that lies in the dark.
      fill(c, clear("#33428c", 0.55), () => {
        c.moveTo(px, 0), c.lineTo(px, top);
        for (let at = 1; at <= 6; at++) c.lineTo(px + (at % 2 ? 1 : -1) * reach * 0.07 - at * 2, top + at * depth * 0.26);
        c.lineTo(px - reach * 0.4, top + depth * 2), c.lineTo(px - reach, 600 - peaks(px - reach) + 2), c.lineTo(px - reach, 0);
      });
    }
  });
  rect(c, down(c, 430, 640, [0, clear("#8ea0dc", 0)], [1, clear("#9fb0e6", 0.5)]), 0, 430, W, 210);
  ridge(c, down(c, 420, 700, [0, "#26357a"], [1, "#1b2760"]), 640, (x) => 90 + middle(x / 260) * 70);
  rect(c, down(c, 540, 680, [0, clear("#7f8fd0", 0)], [1, clear("#7f8fd0", 0.34)]), 0, 540, W, 140);
  ridge(c, down(c, 560, 760, [0, "#16215a"], [1, "#0d163f"]), 700, (x) => 56 + low(x / 170) * 44);
  const next = random(5);
  // A village in the valley.
  for (let house = 0; house < 26; house++) {
    const [x, y] = [990 + next() * 460, 716 + next() * 60];
    const s = 7 + (y - 700) / 7;
    poly(c, "#0a1133", [x - s, y], [x - s, y - s], [x, y - s * 1.8], [x + s, y - s], [x + s, y]);
    rect(c, "#ffcf87", x - s * 0.3, y - s * 0.8, s * 0.5, s * 0.45);
    glow(c, x, y - s * 0.6, s * 2.6, "#ffb45a", 0.4);
  }
  poly(c, "#0a1133", [1196, 742], [1196, 690], [1206, 656], [1216, 690], [1216, 742]);
  // Trees of the middle ground, in front of the valley and behind the arches.
  for (let tree = 0; tree < 110; tree++) {
    const x = next() * W;
    const y = 800 + next() * 60 + (Math.abs(x - 1180) < 260 ? 50 : 0);
    pine(c, ["#0b1338", "#0f1943", "#09102e"][tree % 3], x, y, 70 + next() * 70, next);
  }
  rect(c, down(c, 690, 860, [0, clear("#6676c0", 0)], [0.6, clear("#6676c0", 0.26)], [1, clear("#6676c0", 0)]), 0, 690, W, 170);

  // The viaduct.
  for (let span = -1; span < 9; span++) {
    const [x0, x1] = [span * 190 - 20, span * 190 + 170];
    const y = track((x0 + x1) / 2) + 34;
    fill(c, down(c, y - 20, y + 100, [0, "#5d6794"], [1, "#2a3260"]), () => {
      c.moveTo(x0, track(x0) + 18);
      c.lineTo(x1 + 20, track(x1 + 20) + 18);
      c.lineTo(x1 + 20, y + 100);
      c.ellipse((x0 + x1) / 2 + 10, y + 100, 78, 84, 0, 0, Math.PI, true);
      c.lineTo(x0, y + 100);
    });
    stroke(c, clear("#9aa6d6", 0.5), 4, () => c.ellipse((x0 + x1) / 2 + 10, y + 100, 80, 86, 0, Math.PI * 1.02, Math.PI * 1.98));
  }
  for (let span = -1; span < 9; span++) {
    const x = span * 190 - 20;
    poly(c, linear(c, x - 24, 0, x + 24, 0, [[0, "#1a2148"], [0.35, "#5a648f"], [0.65, "#3a4370"], [1, "#141a3c"]]), [x - 17, track(x) + 20], [x + 17, track(x) + 20], [x + 25, 910], [x - 25, 910]);
    for (let course = 0; course < 9; course++) stroke(c, clear("#0c1130", 0.35), 1.5, () => (c.moveTo(x - 20, track(x) + 90 + course * 30), c.lineTo(x + 20, track(x) + 90 + course * 30)));
  }
  fill(c, linear(c, 0, 600, 0, 640, [[0, "#8791bd"], [1, "#3c4674"]]), () => {
    for (let x = -10; x <= W + 10; x += 20) c.lineTo(x, track(x) + 10);
    for (let x = W + 10; x >= -10; x -= 20) c.lineTo(x, track(x) + 32);
  });

  // The wire on its masts.
  for (let mast = 0; mast < 9; mast++) {
    const x = mast * 190 + 74;
    stroke(c, "#11183f", 4, () => (c.moveTo(x, track(x) + 14), c.lineTo(x, track(x) - 124), c.lineTo(x + 34, track(x) - 124)));
  }
  stroke(c, clear("#1a2250", 0.9), 2, () => {
    for (let x = -20; x <= W + 20; x += 10) c.lineTo(x, track(x) - 116 + Math.cos(((x - 108) / 190) * Math.PI * 2) * -4);
  });

  // The train: coaches with warm windows, the locomotive ahead.
  const coach = (x, w, kind) => {
    within(c, {}, () => {
      c.translate(x, track(x + w / 2) + 6);
      c.rotate(Math.atan2(track(x + w) - track(x), w));
      const h = 82;
      for (const bogie of [w * 0.18, w * 0.82]) {
        rect(c, "#070b22", bogie - 27, -11, 54, 9, 3);
        for (const wheel of [-17, 17]) disc(c, "#05081a", bogie + wheel, -4, 8), disc(c, "#39416d", bogie + wheel, -4, 3);
      }
      fill(c, down(c, -h - 10, -8, [0, "#5b6fc0"], [0.12, "#26337c"], [0.6, "#18235f"], [1, "#0c1340"]), () => {
        if (kind === "engine") {
          c.moveTo(0, -10);
          c.lineTo(0, -h);
          c.lineTo(w - 74, -h - 2);
          c.bezierCurveTo(w - 34, -h, w - 12, -56, w - 2, -26);
          c.quadraticCurveTo(w, -12, w - 10, -10);
          c.closePath();
        } else c.roundRect(0, -h, w, h - 10, [12, 12, 4, 4]);
      });
      rect(c, "#e8b65a", 0, -30, kind === "engine" ? w - 8 : w, 4);
      rect(c, clear("#c9d4ff", 0.5), 10, -h + 1, w - (kind === "engine" ? 92 : 20), 2, 1);
      if (kind === "engine") {
        poly(c, linear(c, w - 78, -72, w - 20, -50, [[0, "#cfe2ff"], [1, "#5f7bbd"]]), [w - 66, -72], [w - 44, -72], [w - 20, -48], [w - 58, -48]);
        for (let vent = 0; vent < 5; vent++) rect(c, "#0b1238", 22 + vent * 22, -66, 14, 22, 2);
        stroke(c, "#8f9bd0", 3, () => (c.moveTo(60, -h), c.lineTo(82, -h - 22), c.lineTo(56, -h - 34), c.moveTo(40, -h - 34), c.lineTo(80, -h - 34)));
        disc(c, "#ffffff", w - 13, -32, 5, 6);
      } else {
        const count = kind === "seats" ? 9 : 7;
        for (let at = 0; at < count; at++) {
          const wx = 24 + (at * (w - 44)) / count;
          const ww = (w - 44) / count - 9;
          const lit = next();
          const dark = lit < (kind === "seats" ? 0.1 : 0.34);
          rect(c, dark ? "#0a1030" : down(c, -66, -40, [0, "#fff0bd"], [1, lit > 0.8 ? "#ffa95a" : "#ffcd7c"]), wx, -67, ww, 27, 4);
          if (dark) continue;
          if (lit > 0.7) disc(c, "#7d4526", wx + ww * 0.4, -47, 5, 6), disc(c, "#7d4526", wx + ww * 0.4, -38, 8, 6);
          else if (kind !== "seats" && lit > 0.5) poly(c, clear("#d9705a", 0.75), [wx, -67], [wx + ww * 0.4, -67], [wx + ww * 0.2, -40], [wx, -40]);
        }
        glow(c, w / 2, -52, w * 0.62, "#ffb257", 0.4, 0.42);
        rect(c, "#0a1136", 6, -70, 12, 56, 3);
      }
    });
  };
  const kinds = ["seats", "berths", "berths", "seats", "berths", "berths"];
  kinds.forEach((kind, at) => coach(-150 + at * 222, 216, kind));
  coach(-150 + 6 * 222, 190, "engine");
  // Its light on the rails.
  within(c, { globalCompositeOperation: "lighter", filter: "blur(5px)" }, () => {
    const [lx, ly] = [1362, track(1362) - 24];
    poly(c, linear(c, lx, 0, lx + 420, 0, [[0, clear("#fff1c8", 0.75)], [1, clear("#fff1c8", 0)]]), [lx, ly - 4], [lx + 420, ly - 70], [lx + 420, ly + 62], [lx, ly + 5]);
  });
  glow(c, 1364, track(1364) - 25, 80, "#fff0c4", 1);
  // The nearest trees.
  for (const [x, y, h] of [[40, 930, 420], [128, 940, 320], [-30, 940, 520], [214, 940, 230], [1530, 940, 440], [1604, 930, 560], [1452, 950, 280], [1380, 950, 190], [320, 950, 170]]) pine(c, "#040718", x, y, h, next);
  ridge(c, "#040718", 884, (x) => low(x / 120 + 40) * 14 + 8);
  vignette(c, 0.4, "#02040f");
}
