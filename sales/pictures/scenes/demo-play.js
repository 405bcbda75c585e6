/** A small stage before a lake, the moon, and a gull. */
import { clear, disc, down, fill, glow, H, linear, noise, poly, radial, random, rect, ridge, stars, stroke, vignette, W, within } from "./brush.js";

function gull(c, x, y, s, turn) {
  within(c, {}, () => {
    c.translate(x, y);
    c.rotate(turn);
    c.scale(s, s);
    // The far wing, the body with its tail, the near wing.
    fill(c, linear(c, 0, -110, 0, 10, [[0, "#7f8fb8"], [1, "#dfe6f5"]]), () => {
      c.moveTo(-14, -8);
      c.bezierCurveTo(10, -50, 40, -76, 96, -92);
      c.bezierCurveTo(130, -104, 150, -118, 178, -112);
      c.bezierCurveTo(140, -86, 96, -40, 40, 4);
    });
    fill(c, linear(c, 0, -20, 0, 26, [[0, "#ffffff"], [0.6, "#e6ecf8"], [1, "#a9b6d6"]]), () => {
      c.moveTo(88, -2);
      c.bezierCurveTo(74, -20, 50, -18, 28, -14);
      c.bezierCurveTo(-10, -18, -50, -8, -112, 10);
      c.lineTo(-124, 24);
      c.lineTo(-92, 22);
      c.bezierCurveTo(-40, 34, 20, 30, 58, 12);
      c.bezierCurveTo(74, 10, 84, 6, 88, -2);
    });
    poly(c, "#f2a23c", [86, -6], [108, 2], [86, 5]);
    disc(c, "#1b2440", 72, -6, 2.6);
    fill(c, linear(c, -120, -150, 20, 10, [[0, "#8fa0c9"], [0.45, "#f4f7fd"], [1, "#ffffff"]]), () => {
      c.moveTo(34, 0);
      c.bezierCurveTo(22, -46, -6, -92, -62, -124);
      c.bezierCurveTo(-96, -144, -134, -150, -186, -140);
      c.bezierCurveTo(-160, -124, -136, -112, -120, -92);
      c.bezierCurveTo(-92, -52, -62, -16, -26, 8);
    });
    fill(c, "#27304f", () => {
      c.moveTo(-186, -140);
      c.bezierCurveTo(-160, -148, -132, -148, -112, -142);
      c.bezierCurveTo(-126, -132, -136, -124, -142, -114);
      c.bezierCurveTo(-154, -124, -168, -132, -186, -140);
    });
  });
}

function birch(c, x, foot, width, lean, next) {
  fill(c, linear(c, x - width / 2, 0, x + width / 2, 0, [[0, "#5b6788"], [0.35, "#e6ebf5"], [0.7, "#b9c3da"], [1, "#3c4668"]]), () => {
    c.moveTo(x - width * 0.6, foot);
    c.quadraticCurveTo(x - width * 0.4, foot / 2, x + lean - width * 0.3, -10);
    c.lineTo(x + lean + width * 0.3, -10);
    c.quadraticCurveTo(x + width * 0.45, foot / 2, x + width * 0.62, foot);
  });
  for (let y = 30; y < foot - 10; y += 22 + next() * 46) {
    const shift = lean * (1 - y / foot) ** 1.6;
    const [side, wide] = [next() < 0.5 ? -1 : 1, width * (0.25 + next() * 0.4)];
    fill(c, "#1d2440", () => c.ellipse(x + shift + side * (width * 0.38 - wide / 2), y, wide / 2, 2.5 + next() * 3.5, side * 0.15, 0, Math.PI * 2));
  }
}

export default function draw(c) {
  const water = 500;
  rect(c, down(c, 0, water, [0, "#0c1a45"], [0.45, "#25468a"], [0.8, "#6f8fc4"], [1, "#c9cfe0"]), 0, 0, W, H);
  stars(c, 31, 230, 0, 380);
  const [mx, my] = [960, 250];
  glow(c, mx, my, 520, "#bcd0ff", 0.55);
  disc(c, radial(c, mx - 22, my - 24, 160, [[0, "#fffdf0"], [0.7, "#f3e7c6"], [1, "#d9c79a"]]), mx, my, 108);
  for (const [dx, dy, r] of [[-34, -20, 24], [26, 18, 32], [-14, 46, 18], [44, -44, 14], [-62, 26, 12]]) disc(c, clear("#b8a880", 0.25), mx + dx, my + dy, r, r * 0.86);
  const cloud = noise(14, 4);
  within(c, { filter: "blur(5px)" }, () => {
    for (let layer = 0; layer < 4; layer++) {
      const y = 268 + layer * 54;
      fill(c, clear("#dbe4fa", 0.16), () => {
        c.moveTo(0, y);
        for (let x = 0; x <= W; x += 20) c.lineTo(x, y - Math.max(0, cloud(x / 360 + layer * 7) * 46));
        for (let x = W; x >= 0; x -= 20) c.lineTo(x, y + Math.max(0, cloud(x / 280 + layer * 3) * 9));
      });
    }
  });
  const [far, near] = [noise(3, 4), noise(5, 5)];
  ridge(c, "#5d77ad", water, (x) => 66 + far(x / 300) * 56, water + 4);
  ridge(c, "#3b5389", water, (x) => 24 + near(x / 190) * 30 + Math.max(0, 46 - x / 12), water + 4);
  rect(c, down(c, water, 760, [0, "#b9c6de"], [0.14, "#5f7db6"], [0.6, "#203d79"], [1, "#122650"]), 0, water, W, H - water);
  const next = random(6);
  for (let at = 0; at < 240; at++) {
    const part = next() ** 1.2;
    const y = water + 3 + part * 240;
    const wide = 10 + part * 90;
    rect(c, clear("#fff4d0", (0.2 + 0.6 * next()) * (1 - part * 0.5)), mx + (next() - 0.5) * (70 + part * 270) - wide / 2, y, wide * (0.3 + next()), 1.6 + part * 2.4, 2);
  }
  for (let at = 0; at < 60; at++) {
    const y = water + 6 + next() * 230;
    rect(c, clear("#dfe8ff", 0.1), next() * W, y, 60 + next() * 130, 2, 2);
  }
  // The meadow, the stage and its curtain, half drawn before the lake.
  const meadow = noise(17, 3);
  ridge(c, down(c, 690, 900, [0, "#1f3a4f"], [1, "#081424"]), 716, (x) => meadow(x / 400) * 22);
  poly(c, linear(c, 0, 640, 0, 720, [[0, "#c08a58"], [1, "#7c5234"]]), [470, 664], [1130, 664], [1210, 728], [390, 728]);
  for (let board = 0; board <= 12; board++) stroke(c, clear("#4a2c1c", 0.6), 2, () => (c.moveTo(470 + board * 55, 664), c.lineTo(390 + board * 68.3, 728)));
  rect(c, down(c, 728, 764, [0, "#6b4429"], [1, "#2b1a14"]), 390, 728, 820, 36);
  for (let post = 0; post < 8; post++) rect(c, "#20130f", 410 + post * 110, 744, 12, 34);
  for (const x of [484, 1106]) rect(c, linear(c, x, 0, x + 14, 0, [[0, "#3c2418"], [0.4, "#a87448"], [1, "#3c2418"]]), x, 300, 14, 372, 4);
  stroke(c, "#8f6240", 9, () => (c.moveTo(470, 310), c.lineTo(1134, 310)));
  for (const [outer, inner, side] of [[500, 690, 1], [1104, 946, -1]]) {
    const folds = 7;
    for (let y = 314; y < 666; y += 1) {
      const part = (y - 314) / 352;
      const edge = inner + side * (Math.sin(part * 2.6 + 0.2) * 26 * part - 92 * Math.max(0, part - 0.35) ** 1.4);
      const stops = [];
      for (let fold = 0; fold < folds; fold++) stops.push([fold / folds, "#8b9cc4"], [(fold + 0.5) / folds, "#fbfcff"], [(fold + 0.97) / folds, "#7b8cb8"]);
      rect(c, linear(c, outer, 0, edge, 0, stops), Math.min(outer, edge), y, Math.abs(edge - outer), 1);
    }
  }
  // A young woman in white on a stone, and lamps along the stage.
  fill(c, "#34455f", () => c.ellipse(800, 664, 52, 26, 0, Math.PI, Math.PI * 2));
  fill(c, linear(c, 770, 0, 840, 0, [[0, "#aab9dc"], [0.6, "#ffffff"], [1, "#c4cfe8"]]), () => {
    c.moveTo(790, 572);
    c.quadraticCurveTo(806, 562, 818, 574);
    c.quadraticCurveTo(822, 606, 826, 618);
    c.bezierCurveTo(862, 630, 872, 652, 878, 676);
    c.lineTo(762, 676);
    c.bezierCurveTo(766, 640, 782, 630, 788, 616);
  });
  disc(c, "#f0cdb4", 806, 548, 13, 16);
  fill(c, "#3a2530", () => (c.ellipse(803, 544, 16, 18, 0, Math.PI * 0.75, Math.PI * 1.95), c.quadraticCurveTo(796, 560, 790, 586)));
  within(c, { lineCap: "round", lineJoin: "round" }, () => stroke(c, "#f0cdb4", 7, () => (c.moveTo(816, 582), c.lineTo(846, 574), c.lineTo(872, 548))));
  for (let lamp = 0; lamp < 7; lamp++) {
    const x = 432 + lamp * 123;
    glow(c, x, 722, 78, "#ffbe62", 0.8);
    rect(c, "#fff2c4", x - 5, 714, 10, 15, 4);
  }
  gull(c, 640, 196, 1.1, -0.12);
  gull(c, 1210, 372, 0.28, 0.1), gull(c, 1284, 338, 0.2, -0.1), gull(c, 1168, 420, 0.16, -0.05);
  // Birches, their leaves, and the grass.
  birch(c, 118, 910, 60, 40, next), birch(c, 232, 910, 34, -26, next), birch(c, 1470, 910, 66, -44, next), birch(c, 1372, 910, 30, 30, next);
  within(c, {}, () => {
    for (let leaf = 0; leaf < 420; leaf++) {
      const side = next() < 0.5;
      const [x, y] = [side ? next() ** 1.5 * 480 : W - next() ** 1.5 * 480, next() ** 1.5 * 300];
      if (Math.hypot((side ? x : W - x) - 40, y * 1.4) > 430) continue;
      fill(c, ["#123047", "#1c4560", "#0d2338", "#2d5f78"][Math.floor(next() * 4)], () => c.ellipse(x, y, 13 + next() * 8, 7, next() * 3, 0, Math.PI * 2));
    }
  });
  for (let blade = 0; blade < 260; blade++) {
    const [x, h] = [next() * W, 24 + next() * 62];
    stroke(c, next() < 0.5 ? "#050c1a" : "#0b1c2c", 3, () => (c.moveTo(x, 910), c.quadraticCurveTo(x, 900 - h / 2, x + (next() - 0.5) * 40, 904 - h)));
  }
  vignette(c, 0.42, "#030817");
}
