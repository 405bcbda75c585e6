/** The house of an old theatre, its curtain opening on a quay at dusk. */
import { beam, clear, crowd, disc, down, fill, glow, H, linear, mix, noise, poly, radial, random, rect, ridge, stroke, vignette, W, within } from "./brush.js";

const GOLD = [[0, "#6b4118"], [0.3, "#e8bd6a"], [0.5, "#fff0bf"], [0.7, "#c98f3c"], [1, "#5a3412"]];

/** Half of the curtain, drawn aside: its folds hang from the whole width and gather at `waist`. */
function cloth(c, outer, inner, top, bottom, folds, waist) {
  for (let y = top; y < bottom; y += 1) {
    const part = (y - top) / (bottom - top);
    const drawn = y < waist ? 0.62 * Math.sin((Math.PI / 2) * ((y - top) / (waist - top)) ** 1.5) : 0.62 - 0.16 * Math.sin((Math.PI / 2) * ((y - waist) / (bottom - waist)));
    const edge = mix(inner, outer, drawn);
    const shade = 0.35 * Math.max(0, 1 - Math.abs(y - waist) / 46) + 0.3 * (1 - part) ** 3;
    const stops = [];
    for (let fold = 0; fold < folds; fold++) {
      const [at, wide] = [fold / folds, 1 / folds];
      stops.push([at, "#4a0612"], [at + wide * 0.3, "#a81b2c"], [at + wide * 0.48, fold % 3 ? "#d43a3c" : "#ea5a49"], [at + wide * 0.7, "#9a1526"], [at + wide * 0.98, "#3d0510"]);
    }
    const [x, w] = [Math.min(outer, edge), Math.abs(edge - outer)];
    rect(c, linear(c, outer, 0, edge, 0, stops), x, y, w, 1);
    rect(c, clear("#1c0208", shade), x, y, w, 1);
  }
}

function box(c, x, y, side, scale) {
  const w = 128 * scale;
  // The opening, with its light and its guests.
  fill(c, radial(c, x, y - 40 * scale, 110 * scale, [[0, "#ffce86"], [0.5, "#9a4526"], [1, "#3a1116"]]), () => {
    c.moveTo(x - w * 0.42, y);
    c.lineTo(x - w * 0.42, y - 70 * scale);
    c.quadraticCurveTo(x, y - 150 * scale, x + w * 0.42, y - 70 * scale);
    c.lineTo(x + w * 0.42, y);
  });
  for (const [dx, r] of [[-24, 13], [14, 14]]) {
    disc(c, "#2a0d14", x + dx * scale, y - 34 * scale, r * scale * 0.85, r * scale);
    disc(c, "#2a0d14", x + dx * scale, y - 2 * scale, r * 1.9 * scale, r * 1.8 * scale);
  }
  for (const edge of [-1, 1]) {
    fill(c, linear(c, x + edge * w * 0.5, 0, x + edge * w * 0.2, 0, [[0, "#5c0a18"], [0.6, "#b92736"], [1, "#6d0d1c"]]), () => {
      c.moveTo(x + edge * w * 0.44, y - 96 * scale);
      c.quadraticCurveTo(x + edge * w * 0.06, y - 90 * scale, x + edge * w * 0.36, y - 30 * scale);
      c.lineTo(x + edge * w * 0.34, y);
      c.lineTo(x + edge * w * 0.46, y);
    });
  }
  stroke(c, linear(c, x - w / 2, 0, x + w / 2, 0, GOLD), 7 * scale, () => {
    c.moveTo(x - w * 0.45, y);
    c.lineTo(x - w * 0.45, y - 72 * scale);
    c.quadraticCurveTo(x, y - 156 * scale, x + w * 0.45, y - 72 * scale);
    c.lineTo(x + w * 0.45, y);
  });
  // The parapet.
  const lower = y + 62 * scale;
  fill(c, linear(c, x - w * 0.6, 0, x + w * 0.6, 0, [[0, "#5d3a20"], [side < 0 ? 0.7 : 0.3, "#e9cf9f"], [1, "#6a4526"]]), () => {
    c.moveTo(x - w * 0.6, y);
    c.lineTo(x + w * 0.6, y);
    c.bezierCurveTo(x + w * 0.6, lower, x + w * 0.34, lower + 10, x, lower + 12 * scale);
    c.bezierCurveTo(x - w * 0.34, lower + 10, x - w * 0.6, lower, x - w * 0.6, y);
  });
  rect(c, linear(c, x - w * 0.64, 0, x + w * 0.64, 0, GOLD), x - w * 0.64, y - 8 * scale, w * 1.28, 14 * scale, 6);
  for (const dx of [-0.36, 0, 0.36]) stroke(c, "#b27e35", 2.5 * scale, () => c.ellipse(x + dx * w, y + 28 * scale, 15 * scale, 12 * scale, 0, 0, Math.PI * 2));
  glow(c, x - side * w * 0.62, y - 46 * scale, 60 * scale, "#ffbf6a", 0.8);
  disc(c, "#fff3d0", x - side * w * 0.62, y - 46 * scale, 6 * scale, 8 * scale);
}

export default function draw(c) {
  rect(c, radial(c, 800, 420, 980, [[0, "#6d2320"], [0.5, "#431519"], [1, "#16070d"]]), 0, 0, W, H);
  // The wall beside the stage, in panels.
  for (const side of [-1, 1]) {
    for (let panel = 0; panel < 3; panel++) {
      const x = 800 + side * (540 + panel * 120);
      rect(c, linear(c, x - 60, 0, x + 60, 0, [[0, "#35101a"], [0.5, "#5d1e24"], [1, "#2c0c15"]]), x - 57, 0, 114, 720);
    }
  }

  // What is on the stage: a quay, a ship, the road of salt to the sun.
  within(c, {}, () => {
    c.beginPath();
    c.rect(350, 130, 900, 560);
    c.clip();
    rect(c, down(c, 130, 520, [0, "#132a4e"], [0.45, "#3d5f88"], [0.75, "#e8a27a"], [1, "#ffd9a0"]), 350, 130, 900, 560);
    glow(c, 800, 470, 330, "#ffd08a", 0.9);
    disc(c, "#fff1cf", 800, 462, 46);
    const coast = noise(4, 4);
    ridge(c, "#6d6f92", 482, (x) => 24 + coast(x / 150) * 34);
    rect(c, down(c, 480, 600, [0, "#f3b98a"], [0.3, "#6a7ea4"], [1, "#1d3357"]), 350, 482, 900, 130);
    const next = random(5);
    for (let at = 0; at < 150; at++) {
      const y = 484 + next() ** 1.5 * 110;
      const wide = 12 + (y - 484) * 0.9;
      rect(c, clear("#ffe9c4", 0.15 + next() * 0.55), 800 + (next() - 0.5) * (60 + (y - 484) * 2.2) - wide / 2, y, wide * next(), 2);
    }
    // The ship.
    const [x, y] = [990, 545];
    fill(c, "#1b2033", () => {
      c.moveTo(x - 118, y - 34);
      c.quadraticCurveTo(x - 96, y + 14, x - 60, y + 16);
      c.lineTo(x + 96, y + 16);
      c.quadraticCurveTo(x + 122, y - 8, x + 132, y - 40);
      c.quadraticCurveTo(x, y - 18, x - 118, y - 34);
    });
    for (const [mast, top] of [[-52, 250], [22, 214], [86, 262]]) stroke(c, "#1b2033", 5, () => (c.moveTo(x + mast, y - 20), c.lineTo(x + mast, top)));
    stroke(c, "#1b2033", 3, () => (c.moveTo(x - 118, y - 34), c.lineTo(x - 176, y - 70), c.lineTo(x - 52, 256), c.lineTo(x + 22, 222), c.lineTo(x + 86, 268), c.lineTo(x + 132, y - 40)));
    const sail = (mast, top, w, h, colour) => fill(c, colour, () => {
      c.moveTo(x + mast - w / 2, top);
      c.lineTo(x + mast + w / 2, top);
      c.quadraticCurveTo(x + mast + w * 0.72, top + h * 0.6, x + mast + w * 0.56, top + h);
      c.quadraticCurveTo(x + mast, top + h * 0.84, x + mast - w * 0.56, top + h);
      c.quadraticCurveTo(x + mast - w * 0.4, top + h * 0.5, x + mast - w / 2, top);
    });
    for (const [mast, top, w] of [[-52, 272, 60], [22, 238, 70], [86, 284, 52]]) {
      sail(mast, top, w, 70, "#f0cfa4");
      sail(mast, top + 84, w * 1.25, 92, "#e2b68c");
    }
    // Houses of the quay, and sacks of salt.
    for (const [hx, w, h, colour] of [[352, 86, 230, "#2c2438"], [436, 64, 190, "#3a2c3f"], [498, 74, 214, "#281f33"], [570, 56, 160, "#382a3c"]]) {
      poly(c, colour, [hx, 600], [hx, 600 - h], [hx + w / 2, 600 - h - w * 0.55], [hx + w, 600 - h], [hx + w, 600]);
      for (let row = 0; row < 4; row++) {
        for (const part of [0.26, 0.62]) {
          const lit = next() < 0.55;
          rect(c, lit ? "#ffc873" : "#191423", hx + w * part - 6, 600 - h + 14 + row * 42, 14, 22);
          if (lit) glow(c, hx + w * part, 600 - h + 24 + row * 42, 30, "#ffb055", 0.35);
        }
      }
    }
    rect(c, down(c, 590, 690, [0, "#8a5a3c"], [0.15, "#4d3026"], [1, "#2a1716"]), 350, 592, 900, 110);
    for (let board = 0; board < 15; board++) stroke(c, clear("#1d0e0d", 0.5), 2, () => (c.moveTo(800 + (board - 7) * 58, 594), c.lineTo(800 + (board - 7) * 96, 690)));
    for (const [sx, sy, r] of [[640, 612, 24], [684, 616, 22], [662, 588, 22], [1118, 614, 24], [1162, 618, 21]]) {
      disc(c, linear(c, sx - r, sy - r, sx + r, sy + r, [[0, "#fff3e0"], [0.6, "#d6b794"], [1, "#8d6a52"]]), sx, sy, r, r * 0.82);
      stroke(c, "#8d6a52", 3, () => (c.moveTo(sx - 6, sy - r * 0.78), c.lineTo(sx + 6, sy - r * 0.78)));
    }
    // One woman with a lantern.
    poly(c, "#17101c", [770, 628], [784, 560], [792, 540], [806, 540], [816, 562], [832, 628]);
    disc(c, "#17101c", 799, 527, 12, 14);
    stroke(c, "#17101c", 7, () => (c.moveTo(812, 552), c.lineTo(838, 572)));
    glow(c, 840, 590, 120, "#ffc66b", 0.95);
    rect(c, "#fff0c0", 834, 578, 12, 18, 3);
    for (const bx of [-210, 210]) beam(c, 800 + bx, 120, 180 - bx / 12, 560, 90, "#ffe3b0", 0.13, 10);
  });

  // The curtain: the drapery above, and both halves drawn aside.
  cloth(c, 344, 640, 124, 694, 12, 490);
  cloth(c, 1256, 960, 124, 694, 12, 490);
  for (let swag = 0; swag < 5; swag++) {
    const [x0, x1] = [344 + swag * 182.4, 344 + (swag + 1) * 182.4];
    for (let fold = 0; fold < 6; fold++) {
      const drop = 124 - fold * 19;
      fill(c, down(c, 120, 140 + drop, [0, "#5c0915"], [0.55, "#a81c2c"], [0.86, "#dd463f"], [1, "#7c1120"]), () => {
        c.moveTo(x0, 118);
        c.quadraticCurveTo((x0 + x1) / 2, 118 + drop * 1.75, x1, 118);
      });
    }
    stroke(c, "#e6b55c", 5, () => (c.moveTo(x0, 124), c.quadraticCurveTo((x0 + x1) / 2, 122 + 124 * 1.75, x1, 124)));
    if (swag > 0) {
      rect(c, linear(c, x0 - 9, 0, x0 + 9, 0, GOLD), x0 - 7, 120, 14, 54, 7);
      poly(c, "#c8923f", [x0 - 9, 172], [x0 + 9, 172], [x0 + 13, 214], [x0 - 13, 214]);
    }
  }
  for (const side of [-1, 1]) {
    const x = 800 + side * 398;
    rect(c, linear(c, x - 60, 0, x + 60, 0, GOLD), x - 62, 482, 124, 13, 6);
    poly(c, "#d8a24c", [x - side * 46 - 8, 494], [x - side * 46 + 8, 494], [x - side * 46 + 14, 556], [x - side * 46 - 14, 556]);
  }

  // The arch.
  for (const side of [-1, 1]) {
    const x = side < 0 ? 296 : 1250;
    rect(c, linear(c, x, 0, x + 54, 0, GOLD), x, 116, 54, 590);
    for (let flute = 0; flute < 3; flute++) rect(c, clear("#5f3a14", 0.45), x + 11 + flute * 13, 150, 5, 520, 3);
    rect(c, down(c, 88, 122, ...GOLD), x - 12, 96, 78, 28, 5);
    rect(c, down(c, 684, 716, ...GOLD), x - 12, 684, 78, 28, 4);
  }
  fill(c, down(c, 20, 126, [0, "#5e3a16"], [0.35, "#d9a856"], [0.6, "#fbe3a4"], [1, "#8c5b22"]), () => {
    c.moveTo(270, 124);
    c.lineTo(270, 84);
    c.quadraticCurveTo(800, -22, 1330, 84);
    c.lineTo(1330, 124);
  });
  fill(c, down(c, 40, 120, [0, "#591420"], [1, "#8a2630"]), () => {
    c.moveTo(310, 108);
    c.lineTo(310, 94);
    c.quadraticCurveTo(800, 4, 1290, 94);
    c.lineTo(1290, 108);
  });
  for (let lamp = 0; lamp <= 34; lamp++) {
    const x = 316 + lamp * 28.5;
    const y = 99 - 44 * (1 - ((x - 800) / 490) ** 2);
    disc(c, "#fff2c8", x, y, 4);
    glow(c, x, y, 22, "#ffc96e", 0.5);
  }
  // A shell in the middle, without words.
  for (let rib = -4; rib <= 4; rib++) fill(c, rib % 2 ? "#e5b964" : "#f8dfa0", () => {
    c.moveTo(800, 112);
    c.lineTo(800 + Math.sin((rib - 0.5) * 0.3) * 62, 112 - Math.cos((rib - 0.5) * 0.3) * 66);
    c.lineTo(800 + Math.sin((rib + 0.5) * 0.3) * 62, 112 - Math.cos((rib + 0.5) * 0.3) * 66);
  });

  for (const side of [-1, 1]) {
    box(c, 800 + side * 626, 300, side, 1.18);
    box(c, 800 + side * 638, 558, side, 1.24);
  }

  // Footlights, orchestra rail, and the house.
  rect(c, down(c, 690, 720, [0, "#f0cd8a"], [0.3, "#7c4a22"], [1, "#2b130e"]), 280, 692, 1040, 28);
  for (let lamp = 0; lamp < 19; lamp++) {
    const x = 342 + lamp * 51;
    disc(c, "#fff4d2", x, 694, 8, 6);
    glow(c, x, 688, 56, "#ffca75", 0.55);
  }
  rect(c, down(c, 712, 900, [0, "#3b1117"], [1, "#0b0407"]), 0, 716, W, 190);
  crowd(c, 31, 762, 24, "#32101a", { rim: "#c46a4a", arms: 0, step: 1.9 });
  for (const [row, y, size, colour, rim] of [[0, 806, 33, "#260b14", "#a4503c"], [1, 862, 45, "#19070e", "#7f3a30"]]) {
    // The backs of the seats, row by row.
    for (let x = -30 + row * 24; x < W + 40; x += size * 1.9) rect(c, linear(c, x, 0, x + size * 1.7, 0, [[0, "#3a0911"], [0.5, "#6e1420"], [1, "#3a0911"]]), x, y - size * 0.15, size * 1.72, 120, size * 0.5);
    crowd(c, 40 + row, y, size, colour, { rim, arms: 0, step: 1.9 });
  }
  crowd(c, 50, 944, 60, "#0c0408", { rim: "#54241f", arms: 0, step: 1.85 });
  vignette(c, 0.6, "#0a0307");
}
