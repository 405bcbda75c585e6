/** A band in a brick vault below a quay. */
import { beam, clear, crowd, disc, down, fill, glow, H, mix, poly, radial, random, rect, stroke, vignette, W, within } from "./brush.js";

const [CX, CY] = [800, 500];

/** An arch of the vault: how far it is, 0 (here) to 1 (at the stage). */
function arch(c, part, inset = 0) {
  const scale = mix(1.42, 0.43, part ** 0.62);
  const [half, spring, rise] = [(640 - inset) * scale, CY + 20 * scale, (470 - inset) * scale];
  c.moveTo(CX - half, CY + 330 * scale);
  c.lineTo(CX - half, spring);
  c.ellipse(CX, spring, half, rise, 0, Math.PI, Math.PI * 2);
  c.lineTo(CX + half, CY + 330 * scale);
  return { scale, half, spring, rise };
}

export default function draw(c) {
  rect(c, "#07040f", 0, 0, W, H);
  const next = random(2);
  // Vaults from the nearest to the farthest, with bricks between ribs.
  for (let rib = 0; rib < 7; rib++) {
    const [near, far] = [rib / 7, (rib + 0.78) / 7];
    const light = (rib / 6) ** 1.3;
    fill(c, radial(c, CX, CY - 40, 900, [[0, `hsl(${318 - rib * 4} 62% ${10 + light * 26}%)`], [0.6, `hsl(${292 - rib * 5} 52% ${7 + light * 16}%)`], [1, "#0a0618"]]), () => arch(c, near));
    // Courses of bricks.
    for (let course = 0; course < 5; course++) {
      const part = mix(near, far, course / 5);
      const scale = mix(1.42, 0.43, part ** 0.62);
      const [half, spring, rise] = [640 * scale, CY + 20 * scale, 470 * scale];
      within(c, {}, () => stroke(c, clear("#05020c", 0.34), 2.4 * scale, () => arch(c, part)));
      for (let brick = 0; brick <= 30; brick++) {
        const angle = Math.PI + (Math.PI * (brick + (course % 2) / 2)) / 30;
        const ahead = mix(1.42, 0.43, mix(near, far, (course + 1) / 5) ** 0.62);
        const [x, y] = [CX + Math.cos(angle) * half, spring + Math.sin(angle) * rise];
        const [x1, y1] = [CX + Math.cos(angle) * 640 * ahead, CY + 20 * ahead + Math.sin(angle) * 470 * ahead];
        stroke(c, clear("#05020c", 0.28), 1.8 * scale, () => (c.moveTo(x, y), c.lineTo(x1, y1)));
        if (next() < 0.16) {
          const after = angle + Math.PI / 30;
          poly(c, clear(next() < 0.5 ? "#ff6ab0" : "#7fe4ff", 0.05 + light * 0.1), [x, y], [x1, y1], [CX + Math.cos(after) * 640 * ahead, CY + 20 * ahead + Math.sin(after) * 470 * ahead], [CX + Math.cos(after) * half, spring + Math.sin(after) * rise]);
        }
      }
    }
    // The rib, lit from below by a line of light.
    const width = 26 * mix(1.42, 0.43, far ** 0.62);
    stroke(c, `hsl(300 40% ${7 + light * 9}%)`, width, () => arch(c, far));
    const neon = rib % 2 === 0 ? "#ff3f9c" : "#23d2ff";
    within(c, { globalCompositeOperation: "lighter", filter: `blur(${Math.max(3, width * 0.4)}px)` }, () => stroke(c, clear(neon, 0.75), width * 0.4, () => arch(c, far, 18)));
    stroke(c, rib % 2 === 0 ? "#ffc2e0" : "#c9f5ff", width * 0.12, () => arch(c, far, 18));
  }
  // The end of the vault.
  fill(c, radial(c, CX, 500, 330, [[0, "#ffe3f0"], [0.18, "#ff7dbb"], [0.5, "#8d1f7d"], [1, "#1d0a38"]]), () => arch(c, 1));
  const { half } = (c.beginPath(), arch(c, 1));
  glow(c, CX, 500, 520, "#ff4fa8", 0.6, 0.8);

  // A wall of rings of light behind the band.
  for (let at = 0; at < 5; at++) stroke(c, clear("#ffffff", 0.5 - at * 0.08), 3, () => c.ellipse(CX, 470, 40 + at * 34, 40 + at * 34, 0, 0, Math.PI * 2));
  disc(c, "#fff6fb", CX, 470, 34);

  // The floor, wet with light.
  poly(c, down(c, 620, 900, [0, "#b03a8e"], [0.25, "#4b1a62"], [1, "#0a0518"]), [CX - half, 636], [CX + half, 636], [1700, 910], [-100, 910]);
  // The stage with amplifiers and the band.
  rect(c, down(c, 600, 660, [0, "#2c1240"], [1, "#0c0618"]), CX - half - 30, 604, half * 2 + 60, 60);
  rect(c, "#ff6fb8", CX - half - 30, 603, half * 2 + 60, 3);
  for (const side of [-1, 1]) {
    for (const [dx, h] of [[228, 118], [172, 72]]) {
      rect(c, "#0e0719", CX + side * dx - 27, 604 - h, 54, h, 3);
      for (let y = 604 - h + 24; y < 600; y += 38) disc(c, "#231233", CX + side * dx, y, 16), disc(c, "#3d2053", CX + side * dx, y, 6);
    }
  }
  // Beams through the haze.
  for (let lamp = 0; lamp < 11; lamp++) {
    const part = lamp - 5;
    beam(c, CX + part * 46, 330 + Math.abs(part) * 12, 180 - part * 13, 720, 62, part % 2 ? "#2fd0ff" : "#ff4aa6", 0.27, 4);
    glow(c, CX + part * 46, 330 + Math.abs(part) * 12, 34, part % 2 ? "#8fe8ff" : "#ff9fd0", 0.9);
  }
  const dark = "#0a0414";
  const player = (x, y, h, lean = 0) => {
    within(c, {}, () => {
      c.translate(x, y);
      c.rotate(lean);
      disc(c, dark, 0, -h, h * 0.1, h * 0.125);
      fill(c, dark, () => {
        c.moveTo(-h * 0.17, -h * 0.8);
        c.quadraticCurveTo(0, -h * 0.92, h * 0.17, -h * 0.8);
        c.lineTo(h * 0.12, -h * 0.45);
        c.lineTo(h * 0.2, 0);
        c.lineTo(h * 0.08, 0);
        c.lineTo(0, -h * 0.38);
        c.lineTo(-h * 0.1, 0);
        c.lineTo(-h * 0.22, 0);
        c.lineTo(-h * 0.13, -h * 0.45);
      });
    });
  };
  const limb = (...points) => within(c, { lineCap: "round", lineJoin: "round" }, () => stroke(c, dark, 11, () => points.forEach(([x, y]) => c.lineTo(x, y))));
  // Drums, then guitar and bass.
  player(800, 586, 112);
  disc(c, "#150a24", 800, 578, 34), stroke(c, "#ff9dcb", 2.5, () => c.ellipse(800, 578, 34, 34, 0, 0, Math.PI * 2));
  for (const [x, y] of [[758, 556], [842, 556]]) rect(c, "#150a24", x - 18, y - 12, 36, 28, 5);
  for (const [x, y] of [[736, 520], [866, 516]]) disc(c, "#ffd0e4", x, y, 26, 4), stroke(c, dark, 3, () => (c.moveTo(x, y), c.lineTo(x, 604)));
  limb([784, 500], [756, 522], [742, 504]), limb([816, 500], [842, 524], [862, 498]);
  player(676, 606, 146, -0.06), player(930, 606, 150, 0.07);
  limb([660, 490], [640, 520], [672, 536]), limb([684, 490], [712, 516], [720, 520]);
  within(c, { lineCap: "round" }, () => {
    stroke(c, dark, 7, () => (c.moveTo(668, 540), c.lineTo(744, 496)));
    stroke(c, dark, 7, () => (c.moveTo(934, 540), c.lineTo(1016, 500)));
  });
  disc(c, dark, 664, 542, 24, 18), disc(c, dark, 926, 544, 24, 18);
  limb([950, 488], [978, 512], [984, 516]), limb([918, 488], [900, 520], [926, 540]);

  within(c, { filter: "blur(26px)", globalCompositeOperation: "lighter" }, () => {
    for (let at = 0; at < 16; at++) disc(c, clear(at % 2 ? "#b0338f" : "#3a3fb8", 0.13), next() * W, 560 + next() * 130, 130 + next() * 150, 26 + next() * 26);
  });

  crowd(c, 21, 690, 24, "#3a124e", { rim: "#ff7cbd", arms: 0.4 });
  crowd(c, 22, 738, 36, "#240b38", { rim: "#e0559f", arms: 0.42 });
  crowd(c, 23, 806, 54, "#150724", { rim: "#9f3d97", arms: 0.42, phones: 0.08 });
  crowd(c, 24, 912, 86, "#0a0414", { rim: "#5a2a78", arms: 0.4 });
  vignette(c, 0.6, "#04020a");
}
