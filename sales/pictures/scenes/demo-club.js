/** A night in a club: a moon of light, and waves of it above the floor. */
import { beam, clear, crowd, disc, down, fill, glow, H, linear, mix, noise, poly, random, rect, stroke, vignette, W, within } from "./brush.js";

export default function draw(c) {
  rect(c, down(c, 0, 700, [0, "#04101f"], [0.55, "#0a2a44"], [1, "#0d4a5c"]), 0, 0, W, H);
  // The hall: walls in perspective, a ceiling with beams of steel.
  for (const side of [-1, 1]) {
    poly(c, linear(c, 800 + side * 800, 0, 800 + side * 400, 0, [[0, "#040b18"], [1, "#12445a"]]), [800 + side * 810, -10], [800 + side * 420, 180], [800 + side * 420, 640], [800 + side * 810, 910]);
    for (let post = 0; post < 5; post++) {
      const part = post / 4;
      const x = 800 + side * mix(790, 430, part ** 0.7);
      const [t, b] = [mix(0, 176, part ** 0.7), mix(900, 640, part ** 0.7)];
      rect(c, clear("#031019", 0.8), x - mix(20, 7, part), t, mix(40, 14, part), b - t);
      const neon = post % 2 ? "#ff7a6b" : "#2fe0d0";
      within(c, { globalCompositeOperation: "lighter", filter: "blur(9px)" }, () => rect(c, clear(neon, 0.8), x - side * mix(20, 7, part) - 4, t + 60, 8, (b - t) * 0.7));
      rect(c, "#f2fffb", x - side * mix(20, 7, part) - 1.5, t + 60, 3, (b - t) * 0.7, 2);
    }
  }
  for (let joist = 0; joist < 6; joist++) {
    const y = 14 + joist * 32;
    const half = mix(800, 430, (joist / 5) ** 0.8);
    rect(c, clear("#02080f", 0.75), 800 - half, y, half * 2, mix(15, 6, joist / 5));
  }

  // The moon, and the rings around it.
  const [mx, my, r] = [800, 360, 196];
  glow(c, mx, my, 720, "#ff8f6b", 0.55);
  for (let ring = 1; ring < 6; ring++) stroke(c, clear("#ffb08a", 0.4 - ring * 0.06), 3, () => c.arc(mx, my, r + ring * 34, 0, Math.PI * 2));
  disc(c, linear(c, 0, my - r, 0, my + r, [[0, "#fff3d6"], [0.45, "#ffb47f"], [1, "#ff5f73"]]), mx, my, r);
  for (const [dx, dy, cr] of [[-70, -60, 38], [56, -88, 24], [84, 10, 42], [-104, 40, 22], [-20, -128, 16]]) disc(c, clear("#ff8a68", 0.28), mx + dx, my + dy, cr);

  // Waves of light, the farther the fainter.
  const swell = noise(9, 3);
  for (let wave = 0; wave < 9; wave++) {
    const part = wave / 8;
    const line = (x) => 396 + wave * 25 + Math.sin(x / (150 + wave * 12) + wave * 1.1) * (10 + wave * 4) + swell(x / 240 + wave * 5) * (10 + wave * 3);
    const colour = ["#2fe0d0", "#3fb8ff", "#58f0c0"][wave % 3];
    fill(c, down(c, 400 + wave * 25, 520 + wave * 26, [0, clear(["#0f7d8c", "#0d5f86", "#118a80"][wave % 3], 0.82)], [1, clear("#06263d", 0.9)]), () => {
      c.moveTo(-10, 720);
      for (let x = -10; x <= W + 10; x += 8) c.lineTo(x, line(x));
      c.lineTo(W + 10, 720);
    });
    within(c, { globalCompositeOperation: "lighter", filter: "blur(6px)" }, () => stroke(c, clear(colour, 0.4 + part * 0.35), 8, () => {
      for (let x = -10; x <= W + 10; x += 8) c.lineTo(x, line(x));
    }));
    stroke(c, clear("#e6fffa", 0.55 + part * 0.4), 2 + part, () => {
      for (let x = -10; x <= W + 10; x += 8) c.lineTo(x, line(x));
    });
  }
  for (let lamp = 0; lamp < 10; lamp++) {
    const part = lamp - 4.5;
    beam(c, 800 + part * 78, 150 + Math.abs(part) * -6, 180 - part * 9, 640, 54, lamp % 2 ? "#ff8a6b" : "#3fe6da", 0.26);
    glow(c, 800 + part * 78, 150 + Math.abs(part) * -6, 40, lamp % 2 ? "#ffb08f" : "#8ffff0", 0.9);
  }

  // The desk and the one who plays.
  const dark = "#030b16";
  fill(c, dark, () => {
    c.moveTo(716, 640);
    c.bezierCurveTo(716, 566, 738, 540, 772, 530);
    c.lineTo(776, 512), c.lineTo(826, 512), c.lineTo(830, 530);
    c.bezierCurveTo(864, 540, 886, 566, 886, 640);
  });
  disc(c, dark, 801, 478, 36, 43);
  stroke(c, dark, 10, () => c.arc(801, 474, 42, Math.PI * 1.05, Math.PI * 1.95));
  for (const side of [-1, 1]) rect(c, dark, 801 + side * 42 - 10, 460, 20, 36, 9);
  within(c, { lineCap: "round", lineJoin: "round" }, () => {
    stroke(c, dark, 26, () => (c.moveTo(872, 566), c.lineTo(936, 520), c.lineTo(922, 408)));
    stroke(c, dark, 26, () => (c.moveTo(732, 570), c.lineTo(690, 624), c.lineTo(740, 648)));
  });
  disc(c, dark, 921, 396, 17, 21);
  within(c, { globalCompositeOperation: "lighter" }, () => stroke(c, clear("#ffb48a", 0.7), 3, () => c.arc(801, 478, 44, Math.PI * 1.15, Math.PI * 1.85)));
  poly(c, down(c, 636, 730, [0, "#12384c"], [1, "#051320"]), [560, 640], [1040, 640], [1076, 740], [524, 740]);
  rect(c, "#9ffff2", 556, 637, 488, 4);
  for (const x of [650, 950]) {
    fill(c, "#02070f", () => c.ellipse(x, 637, 66, 13, 0, 0, Math.PI * 2));
    stroke(c, "#3fe6da", 2, () => c.ellipse(x, 637, 48, 9, 0, 0, Math.PI * 2));
    disc(c, "#ff8a6b", x, 637, 12, 3);
  }
  for (let bar = 0; bar < 30; bar++) {
    const h = 12 + 48 * Math.abs(Math.sin(bar * 1.7) * Math.cos(bar * 0.6));
    rect(c, down(c, 660, 728, [0, "#ff8a6b"], [1, "#2fe0d0"]), 578 + bar * 15, 728 - h, 9, h, 2);
  }
  const next = random(3);
  within(c, { filter: "blur(24px)", globalCompositeOperation: "lighter" }, () => {
    for (let at = 0; at < 14; at++) disc(c, clear(at % 2 ? "#1f8f96" : "#b5503f", 0.12), next() * W, 620 + next() * 110, 140 + next() * 150, 24 + next() * 26);
  });
  crowd(c, 61, 732, 27, "#0c3347", { rim: "#5ff0dd", arms: 0.42 });
  crowd(c, 62, 786, 42, "#072435", { rim: "#36b9b8", arms: 0.45 });
  crowd(c, 63, 850, 62, "#041622", { rim: "#e07a63", arms: 0.42, phones: 0.06 });
  crowd(c, 64, 960, 96, "#020a13", { rim: "#8f4a48", arms: 0.4 });
  vignette(c, 0.55, "#01050c");
}
