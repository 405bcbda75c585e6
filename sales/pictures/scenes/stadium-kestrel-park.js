/** A concert in a stadium at dusk, from the back of the pitch. */
import { beam, clear, crowd, disc, down, fill, glow, H, linear, mix, noise, poly, random, rect, ridge, stars, stroke, vignette, W, within } from "./brush.js";

/** A ring of the bowl: its height at the edge of the picture, and in the middle. */
const ring = (edge, middle) => ({ edge, middle });
const PITCH = ring(905, 566);
const LOWER = ring(610, 506);
const BOARD = ring(580, 500);
const UPPER = ring(330, 438);
const UNDER_ROOF = ring(205, 408);
const ROOF = ring(70, 388);

/** A point of a ring: from the edge (0) to the middle (1), on one side. */
function at({ edge, middle }, part, side) {
  const keep = 1 - part;
  const y = keep * keep * edge + 2 * keep * part * (middle + (edge - middle) * 0.1) + part * part * middle;
  const x = keep * keep * -60 + 2 * keep * part * 400 + part * part * 800;
  return [side < 0 ? x : W - x, y];
}

function band(c, style, top, bottom) {
  fill(c, style, () => {
    for (let part = 0; part <= 1.0001; part += 0.02) c.lineTo(...at(top, part, -1));
    for (let part = 1; part >= -0.0001; part -= 0.02) c.lineTo(...at(top, part, 1));
    for (let part = 0; part <= 1.0001; part += 0.02) c.lineTo(...at(bottom, part, 1));
    for (let part = 1; part >= -0.0001; part -= 0.02) c.lineTo(...at(bottom, part, -1));
    c.closePath();
  });
}

function line(c, style, width, of) {
  stroke(c, style, width, () => {
    for (let part = 0; part <= 1.0001; part += 0.02) c.lineTo(...at(of, part, -1));
    for (let part = 1; part >= -0.0001; part -= 0.02) c.lineTo(...at(of, part, 1));
  });
}

const between = (top, bottom, part) => ring(mix(top.edge, bottom.edge, part), mix(top.middle, bottom.middle, part));

function people(c, seed, top, bottom, rows) {
  const next = random(seed);
  const colours = ["#7d5a9e", "#a9618f", "#5a4a8c", "#d98a7e", "#46407a", "#8b7bc0", "#f2b48a"];
  for (let row = 0; row < rows; row++) {
    const of = between(top, bottom, (row + 0.6) / rows);
    for (let part = 0; part < 0.97; part += 0.0085 + part * 0.003) {
      const [near, aisle] = [1 - part, Math.abs((part * 11) % 1 - 0.5) < 0.07];
      for (const side of [-1, 1]) {
        const [bright, colour] = [next(), colours[Math.floor(next() * colours.length)]];
        if (aisle || next() < 0.12) continue;
        const [x, y] = at(of, part + (next() - 0.5) * 0.003, side);
        const r = 1 + near * near * 4.6;
        disc(c, clear(colour, 0.35 + 0.3 * bright), x, y + (next() - 0.5) * r, r * 0.8, r);
        if (bright > 0.985) glow(c, x, y, 5 + r * 3, "#ffe6bf", 0.8);
      }
    }
  }
}

export default function draw(c) {
  rect(c, down(c, 0, 520, [0, "#15173f"], [0.35, "#3a2a6b"], [0.6, "#8d3f7f"], [0.8, "#e3705f"], [1, "#ffc27a"]), 0, 0, W, H);
  stars(c, 3, 130, 0, 260);
  const cloud = noise(8, 4);
  within(c, { filter: "blur(7px)" }, () => {
    for (let layer = 0; layer < 6; layer++) {
      const y = 150 + layer * 42;
      fill(c, clear(layer % 2 ? "#ff9a76" : "#c9568a", 0.13 + layer * 0.02), () => {
        c.moveTo(-20, y);
        for (let x = -20; x <= W + 20; x += 20) c.lineTo(x, y - Math.max(0, cloud(x / 420 + layer * 9) * 46));
        for (let x = W + 20; x >= -20; x -= 20) c.lineTo(x, y + Math.max(0, cloud(x / 300 + layer * 5) * 10));
        c.closePath();
      });
    }
  });
  const hills = noise(21, 4);
  ridge(c, "#5a2f68", 420, (x) => 26 + hills(x / 260) * 30);

  // The bowl: roof, upper ring, lit board, lower ring.
  band(c, down(c, 70, 420, [0, "#20193f"], [1, "#3a2658"]), ROOF, UNDER_ROOF);
  for (let part = 0; part < 0.96; part += 0.045) {
    for (const side of [-1, 1]) {
      stroke(c, clear("#8d6bb0", 0.3), 1 + (1 - part) * 2, () => {
        c.moveTo(...at(ROOF, part, side));
        c.lineTo(...at(UNDER_ROOF, part + 0.012, side));
      });
    }
  }
  line(c, "#f7a77f", 2.5, ROOF);
  band(c, down(c, 200, 460, [0, "#120e2c"], [1, "#2d1c49"]), UNDER_ROOF, UPPER);
  band(c, down(c, 320, 590, [0, "#251a49"], [1, "#47295e"]), UPPER, BOARD);
  people(c, 5, UPPER, BOARD, 10);
  band(c, down(c, 500, 900, [0, "#402660"], [1, "#251741"]), LOWER, PITCH);
  people(c, 6, LOWER, PITCH, 9);
  band(c, "#150f30", BOARD, LOWER);
  line(c, "#ff7ab8", 3.2, between(BOARD, LOWER, 0.45));
  within(c, { globalCompositeOperation: "lighter", filter: "blur(7px)" }, () => line(c, clear("#ff4fa0", 0.7), 9, between(BOARD, LOWER, 0.45)));
  line(c, clear("#0d0923", 0.9), 3, UPPER);
  for (let part = 0.05; part < 0.9; part += 0.068) {
    for (const side of [-1, 1]) {
      const [x, y] = at(between(UNDER_ROOF, UPPER, 0.06), part, side);
      const near = 1 - part;
      for (let lamp = -2; lamp <= 2; lamp++) disc(c, "#fff6e0", x + lamp * (1.5 + near * 5), y + lamp * side * near * -1.5, 0.8 + near * 2);
      glow(c, x, y, 18 + near * 80, "#ffe2b0", 0.55);
    }
  }

  // The pitch, full of people as far as the stage.
  fill(c, down(c, 556, 900, [0, "#7a3a86"], [0.3, "#43245f"], [1, "#160d2c"]), () => {
    c.moveTo(330, 566);
    c.lineTo(1270, 566);
    c.bezierCurveTo(1420, 640, 1560, 790, 1660, 910);
    c.lineTo(-60, 910);
    c.bezierCurveTo(40, 790, 180, 640, 330, 566);
  });
  const next = random(77);
  for (let row = 0; row < 18; row++) {
    const part = (row / 18) ** 1.6;
    const [y, size, half] = [572 + part * 160, 2.6 + part * 6.5, 460 + part * 330];
    for (let x = 800 - half; x < 800 + half; x += size * 2.1) {
      disc(c, ["#57306f", "#6d3b80", "#492a66", "#8a4c88"][Math.floor(next() * 4)], x + next() * size, y + next() * size, size * 0.8, size);
      if (next() > 0.985) glow(c, x, y, 10 + size, "#dfeaff", 0.75);
    }
  }

  // The stage.
  glow(c, 800, 440, 560, "#ff5fae", 0.5, 0.7);
  poly(c, "#120c28", [470, 585], [1130, 585], [1100, 556], [500, 556]);
  rect(c, "#0f0a22", 505, 300, 590, 262);
  const screen = linear(c, 620, 320, 980, 540, [[0, "#2a0f5e"], [0.5, "#b3246f"], [1, "#ff9a4d"]]);
  rect(c, screen, 640, 330, 320, 206);
  within(c, {}, () => {
    c.beginPath();
    c.rect(640, 330, 320, 206);
    c.clip();
    disc(c, linear(c, 0, 380, 0, 520, [[0, "#fff0c2"], [1, "#ff7e5f"]]), 800, 470, 84);
    for (let arc = 0; arc < 7; arc++) stroke(c, clear("#ffffff", 0.65 - arc * 0.07), 2.4, () => c.ellipse(800, 470, 84 + arc * 24, 84 + arc * 24, 0, Math.PI, Math.PI * 2));
    for (let line3 = 0; line3 < 4; line3++) stroke(c, clear("#ffe7d0", 0.5), 2, () => c.ellipse(800, 470, 22 + line3 * 20, 84, 0, 0, Math.PI * 2));
    poly(c, clear("#1a0c38", 0.85), [640, 536], [640, 500], [720, 482], [800, 498], [880, 478], [960, 504], [960, 536]);
  });
  for (const side of [-1, 1]) {
    const x = 800 + side * 222;
    rect(c, linear(c, x - 46, 350, x + 46, 520, [[0, "#3b1a78"], [1, "#e0457b"]]), x - 46, 352, 92, 160);
    // The singer, on the screens beside the stage.
    within(c, {}, () => {
      c.beginPath();
      c.rect(x - 46, 352, 92, 160);
      c.clip();
      c.translate(x, 0);
      c.scale(-side, 1);
      fill(c, "#170a2e", () => {
        c.moveTo(-60, 520);
        c.bezierCurveTo(-52, 476, -30, 474, -16, 462);
        c.bezierCurveTo(-34, 452, -36, 398, -10, 384);
        c.bezierCurveTo(14, 372, 30, 392, 27, 412);
        c.lineTo(31, 422);
        c.lineTo(26, 424);
        c.lineTo(25, 438);
        c.lineTo(14, 446);
        c.bezierCurveTo(14, 464, 22, 470, 36, 480);
        c.bezierCurveTo(44, 490, 46, 506, 48, 520);
      });
      within(c, { lineCap: "round" }, () => {
        stroke(c, "#170a2e", 12, () => (c.moveTo(30, 500), c.lineTo(52, 474), c.lineTo(42, 446)));
        stroke(c, "#0a0518", 6, () => (c.moveTo(44, 452), c.lineTo(36, 436)));
      });
      disc(c, "#0a0518", 34, 433, 6);
    });
  }
  // The truss, with its lamps.
  for (const [x0, y0, x1, y1] of [[490, 290, 1110, 290], [490, 308, 1110, 308]]) stroke(c, "#2c2150", 4, () => (c.moveTo(x0, y0), c.lineTo(x1, y1)));
  for (let x = 490; x < 1110; x += 18) stroke(c, "#2c2150", 2, () => (c.moveTo(x, 308), c.lineTo(x + 9, 290), c.lineTo(x + 18, 308)));
  for (const x of [490, 1092]) rect(c, linear(c, x, 0, x + 18, 0, [[0, "#3b2b66"], [1, "#191033"]]), x, 284, 18, 290);
  const lamps = ["#ff6fb5", "#ffb35c", "#8f7bff", "#5fd4ff"];
  for (let lamp = 0; lamp < 9; lamp++) {
    const x = 516 + lamp * 71;
    beam(c, x, 290, (lamp - 4) * 10.5, 470, 44, lamps[lamp % 4], 0.42);
    glow(c, x, 296, 46, lamps[lamp % 4], 0.95);
    disc(c, "#ffffff", x, 298, 4.5);
  }
  for (let lamp = 0; lamp < 8; lamp++) beam(c, 540 + lamp * 74, 312, 180 + (lamp - 3.5) * -9, 300, 34, lamps[(lamp + 1) % 4], 0.3);
  // The band.
  const player = (x, y, h) => {
    disc(c, "#0a0618", x, y - h, h * 0.14, h * 0.16);
    poly(c, "#0a0618", [x - h * 0.19, y - h * 0.78], [x + h * 0.19, y - h * 0.78], [x + h * 0.13, y - h * 0.42], [x + h * 0.24, y], [x + h * 0.1, y], [x, y - h * 0.38], [x - h * 0.1, y], [x - h * 0.24, y], [x - h * 0.13, y - h * 0.42]);
  };
  for (const [x, h] of [[660, 46], [940, 46], [800, 58]]) player(x, 557, h);
  stroke(c, "#0a0618", 5, () => (c.moveTo(640, 542), c.lineTo(690, 520)));
  stroke(c, "#0a0618", 5, () => (c.moveTo(920, 520), c.lineTo(966, 540)));
  stroke(c, "#0a0618", 3, () => (c.moveTo(812, 557), c.lineTo(816, 506)));
  disc(c, "#0a0618", 726, 544, 15), disc(c, "#0a0618", 746, 548, 11), disc(c, "#0a0618", 868, 546, 14);
  glow(c, 800, 560, 340, "#ffb0d8", 0.55, 0.16);

  // Those who stand before us.
  crowd(c, 11, 742, 17, "#4a2560", { rim: "#d8609d", arms: 0.22, phones: 0.16 });
  crowd(c, 12, 782, 25, "#301848", { rim: "#b34a8e", arms: 0.3, phones: 0.16 });
  crowd(c, 13, 836, 38, "#1d0f33", { rim: "#8d3c82", arms: 0.34, phones: 0.14 });
  crowd(c, 14, 916, 62, "#0e0820", { rim: "#6c2f70", arms: 0.36, phones: 0.12 });
  vignette(c, 0.5, "#0a0620");
}
