/** A train on a bridge over a harbour, the sun low behind it. */
import { clear, disc, down, fill, glow, H, linear, noise, poly, random, rect, ridge, stroke, vignette, W, within } from "./brush.js";

const DECK = 500;
const SEA = 640;

export default function draw(c) {
  rect(c, down(c, 0, SEA, [0, "#2c6fa8"], [0.35, "#6fb0c8"], [0.7, "#ffd9a3"], [1, "#ff9f6e"]), 0, 0, W, H);
  const [sx, sy] = [330, 430];
  glow(c, sx, sy, 760, "#ffc06a", 0.6);
  disc(c, "#fff5d6", sx, sy, 74);
  const cloud = noise(7, 4);
  for (let layer = 0; layer < 6; layer++) within(c, { filter: "blur(3px)" }, () => fill(c, clear(layer % 2 ? "#fff2dc" : "#ffc9a0", 0.4), () => {
    const y = 110 + layer * 58;
    c.moveTo(0, y);
    for (let x = 0; x <= W; x += 16) c.lineTo(x, y - Math.max(0, cloud(x / 320 + layer * 13) * 70 - 12));
    for (let x = W; x >= 0; x -= 16) c.lineTo(x, y + 4);
  }));
  const hills = noise(11, 4);
  ridge(c, "#d98f7c", SEA, (x) => 96 + hills(x / 300) * 60, SEA);
  const next = random(12);
  // The city, the far row in the haze.
  for (const [seed, most, colour, lit] of [[1, 190, "#c4786f", 0.1], [2, 130, "#8d5567", 0.3]]) {
    const towers = random(seed);
    for (let x = -10; x < W; x += 34 + towers() * 38) {
      const [w, h] = [26 + towers() * 40, (30 + most * towers() ** 1.6) * (0.55 + 0.6 * Math.exp(-(((x - 1080) / 420) ** 2)))];
      rect(c, colour, x, SEA - 12 - h, w, h + 12);
      if (towers() < 0.25) poly(c, colour, [x, SEA - 12 - h], [x + w / 2, SEA - 34 - h], [x + w, SEA - 12 - h]);
      rect(c, clear("#ffd9a3", 0.35), x, SEA - 12 - h, 4, h + 12);
      for (let y = SEA - h; y < SEA - 20; y += 14) for (let wx = x + 9; wx < x + w - 6; wx += 11) if (towers() < lit) rect(c, clear("#ffe3a6", 0.8), wx, y, 5, 6);
    }
  }
  // The sea with the sun's road.
  rect(c, down(c, SEA - 4, H, [0, "#ffb27c"], [0.1, "#c9837f"], [0.4, "#3f7291"], [1, "#123f62"]), 0, SEA - 4, W, H);
  for (let at = 0; at < 230; at++) {
    const part = next() ** 1.2;
    const wide = 14 + part * 120;
    rect(c, clear("#fff0c8", (0.25 + 0.6 * next()) * (1 - part * 0.6)), sx + (next() - 0.5) * (90 + part * 420) - wide / 2, SEA + part * 245, wide * (0.3 + next()), 2 + part * 3, 2);
  }
  for (let at = 0; at < 90; at++) {
    const part = next();
    rect(c, clear(at % 3 ? "#0e3552" : "#8fc4d0", 0.22), next() * W, SEA + 8 + part * 240, 50 + part * 150, 2 + part * 3, 3);
  }
  // Reflections of the towers of the bridge.
  const pylons = [470, 1130];
  within(c, { filter: "blur(4px)" }, () => {
    for (const x of pylons) rect(c, down(c, SEA, 860, [0, clear("#3a2c48", 0.6)], [1, clear("#3a2c48", 0)]), x - 26, SEA, 52, 220);
  });
  // The bridge: two towers and their stays.
  for (const x of pylons) {
    for (const lean of [-1, 1]) poly(c, linear(c, x - 40, 0, x + 40, 0, [[0, "#fff0d6"], [0.5, "#d7a58f"], [1, "#7a5066"]]), [x + lean * 4 - 7, 96], [x + lean * 4 + 7, 96], [x + lean * 30 + 10, DECK + 26], [x + lean * 18 + 10, SEA + 14], [x + lean * 18 - 10, SEA + 14], [x + lean * 30 - 10, DECK + 26]);
    rect(c, "#b98378", x - 30, DECK + 30, 60, 14);
    poly(c, down(c, SEA, SEA + 36, [0, "#a4767a"], [1, "#4d3a55"]), [x - 62, SEA + 34], [x - 50, SEA + 8], [x + 50, SEA + 8], [x + 62, SEA + 34]);
    disc(c, "#ff5a4a", x, 90, 4), glow(c, x, 90, 30, "#ff6a50", 0.8);
  }
  const stays = (front) => {
    for (const x of pylons) for (const side of [-1, 1]) for (let stay = 1; stay <= 12; stay++) {
      stroke(c, clear(front ? "#fff3de" : "#8d6673", front ? 0.85 : 0.7), front ? 2 : 1.5, () => (c.moveTo(x + (front ? 3 : -3), 108 + stay * 9), c.lineTo(x + side * (24 + stay * 25.4), DECK - 2)));
    }
  };
  stays(false);
  // The train, between the stays.
  const [top, foot] = [DECK - 60, DECK - 3];
  const coaches = 8;
  for (let coach = 0; coach < coaches; coach++) {
    const [x, w] = [-60 + coach * 158, 154];
    const last = coach === coaches - 1;
    const body = () => {
      c.moveTo(x, foot), c.lineTo(x, top + 6), c.quadraticCurveTo(x, top, x + 8, top);
      if (last) c.lineTo(x + 70, top), c.bezierCurveTo(x + 140, top + 2, x + 176, top + 30, x + 206, top + 46), c.quadraticCurveTo(x + 214, foot, x + 196, foot);
      else c.lineTo(x + w - 8, top), c.quadraticCurveTo(x + w, top, x + w, top + 6), c.lineTo(x + w, foot);
      c.closePath();
    };
    fill(c, down(c, top, foot, [0, "#ffffff"], [0.55, "#f6ece0"], [1, "#bfa6a0"]), body);
    within(c, {}, () => {
      c.beginPath(), body(), c.clip();
      rect(c, "#26344f", x, top + 13, last ? 86 : w, 20, last ? 8 : 0);
      for (let at = 0; at < (last ? 3 : 6); at++) rect(c, linear(c, x, 0, x + w, 0, [[0, "#ffd08a"], [1, "#ff9f6a"]]), x + 12 + at * 23, top + 15, 17, 16, 3);
      rect(c, "#d8383f", x, top + 40, last ? 190 : w, 7);
      if (last) {
        poly(c, "#1c2840", [x + 96, top + 5], [x + 128, top + 9], [x + 160, top + 28], [x + 126, top + 27]);
        fill(c, "#d8383f", () => (c.moveTo(x + 120, top + 40), c.quadraticCurveTo(x + 180, top + 38, x + 220, top + 52), c.lineTo(x + 190, top + 56), c.quadraticCurveTo(x + 160, top + 46, x + 120, top + 47)));
      } else rect(c, "#fff8ee", x + w - 15, top + 9, 11, 40, 2);
    });
    if (last) disc(c, "#fffbe6", x + 196, top + 44, 5, 4), glow(c, x + 198, top + 44, 60, "#fff0c0", 0.9);
    for (const bogie of [24, 128]) rect(c, "#3a3145", x + bogie - 16, foot - 3, 32, 7, 3);
  }
  rect(c, down(c, DECK, DECK + 34, [0, "#fff0d8"], [0.25, "#d9a894"], [1, "#6d4a63"]), 0, DECK, W, 30);
  for (let x = 0; x < W; x += 33) stroke(c, clear("#5a3c58", 0.6), 2, () => (c.moveTo(x, DECK + 28), c.lineTo(x + 16, DECK + 8), c.lineTo(x + 33, DECK + 28)));
  stays(true);
  // A ferry, sailing boats, gulls, and the quay with its bollard.
  const boat = (x, y, s, colour) => {
    poly(c, colour, [x + 4 * s, y - 12 * s], [x + 4 * s, y - 132 * s], [x + 64 * s, y - 14 * s]);
    poly(c, "#fffaf0", [x - 4 * s, y - 14 * s], [x - 2 * s, y - 118 * s], [x - 46 * s, y - 12 * s]);
    stroke(c, "#4a2f3a", 3.4 * s, () => (c.moveTo(x, y), c.lineTo(x, y - 138 * s)));
    fill(c, down(c, y - 10 * s, y + 16 * s, [0, "#ffffff"], [0.5, "#c96a4f"], [1, "#6d3440"]), () => (c.moveTo(x - 56 * s, y - 8 * s), c.lineTo(x + 70 * s, y - 8 * s), c.quadraticCurveTo(x + 46 * s, y + 18 * s, x - 34 * s, y + 16 * s)));
    for (let at = 0; at < 5; at++) rect(c, clear("#fff3dc", 0.34 - at * 0.05), x - (40 - at * 5) * s, y + (20 + at * 9) * s, (86 - at * 12) * s, 3 * s, 3);
  };
  boat(820, 724, 0.8, "#ffd9a0"), boat(690, 690, 0.42, "#fff0d6"), boat(1290, 800, 1.5, "#f2a65e");
  for (const [x, y, s] of [[610, 170, 1], [680, 140, 0.7], [760, 196, 0.8], [900, 120, 0.5]]) within(c, { lineCap: "round" }, () => stroke(c, "#fffaf0", 4 * s, () => (c.moveTo(x - 34 * s, y - 8 * s), c.quadraticCurveTo(x - 14 * s, y - 22 * s, x, y), c.quadraticCurveTo(x + 16 * s, y - 24 * s, x + 36 * s, y - 12 * s))));
  poly(c, down(c, 810, 900, [0, "#5d4560"], [1, "#1f1a33"]), [-10, 830], [430, 862], [520, 910], [-10, 910]);
  stroke(c, "#ffb98a", 4, () => (c.moveTo(-10, 830), c.lineTo(430, 862)));
  for (const x of [110, 320]) {
    rect(c, linear(c, x - 16, 0, x + 16, 0, [[0, "#ffb98a"], [0.3, "#4d3a55"], [1, "#16132a"]]), x - 14, 796 + x * 0.075, 28, 46, 6);
    rect(c, "#2a2140", x - 24, 788 + x * 0.075, 48, 15, 7);
  }
  vignette(c, 0.3, "#1a1030");
}
