/** A high-speed train on its viaduct, on a morning between green hills. */
import { clear, disc, down, fill, glow, H, linear, mix, noise, poly, radial, random, rect, ridge, stroke, vignette, W, within } from "./brush.js";

const RAIL = 560;

/** Hills that stand alone, as those of the south do. */
function karst(c, seed, base, most, from, to, style) {
  const next = random(seed);
  const bumps = noise(seed, 4);
  const hills = Array.from({ length: 13 }, () => ({ x: next() * W, w: mix(from, to, next()), h: most * (0.45 + 0.55 * next()) }));
  ridge(c, style, base, (x) => Math.max(8, ...hills.map((hill) => {
    const away = Math.abs(x - hill.x) / hill.w;
    return away > 1 ? 0 : hill.h * (1 - away ** 2.4) ** 0.8;
  })) + bumps(x / 60) * 9);
}

export default function draw(c) {
  rect(c, down(c, 0, 620, [0, "#5fb3dc"], [0.4, "#a9dbe6"], [0.72, "#fdeecb"], [1, "#ffd6a0"]), 0, 0, W, H);
  const [sx, sy] = [1180, 300];
  glow(c, sx, sy, 620, "#ffd98a", 0.5);
  disc(c, radial(c, sx, sy, 90, [[0, "#fffdf2"], [0.8, "#fff0c0"], [1, clear("#ffe9a8", 0.5)]]), sx, sy, 76);
  const cloud = noise(4, 4);
  for (let layer = 0; layer < 5; layer++) {
    const y = 110 + layer * 54;
    within(c, { filter: "blur(3px)" }, () => fill(c, clear("#ffffff", 0.36), () => {
      c.moveTo(0, y);
      for (let x = 0; x <= W; x += 16) c.lineTo(x, y - Math.max(0, cloud(x / 300 + layer * 11) * 60 - 8));
      for (let x = W; x >= 0; x -= 16) c.lineTo(x, y + 3);
    }));
  }
  const mist = (y, h, opacity, colour = "#fff6e0") => rect(c, down(c, y, y + h, [0, clear(colour, 0)], [0.7, clear(colour, opacity)], [1, clear(colour, opacity * 0.4)]), 0, y, W, h);
  karst(c, 14, 560, 250, 60, 130, down(c, 300, 560, [0, "#86bcc6"], [1, "#cfe3d6"]));
  mist(400, 180, 0.7);
  karst(c, 8, 590, 230, 70, 150, down(c, 350, 600, [0, "#4f9aa0"], [1, "#a9d0b8"]));
  mist(460, 170, 0.75);
  karst(c, 23, 640, 170, 90, 190, down(c, 460, 660, [0, "#2f7f7c"], [1, "#7fb998"]));
  mist(540, 130, 0.7);
  // Fields under water, in terraces, with the sky in them.
  const next = random(3);
  rect(c, down(c, 640, H, [0, "#8fc07a"], [0.4, "#5c9e5c"], [1, "#2b6b4a"]), 0, 640, W, 270);
  const edge = noise(31, 3);
  for (let terrace = 0; terrace < 9; terrace++) {
    const part = (terrace / 9) ** 1.3;
    const y = 652 + part * 236;
    const wave = (x) => y + edge(x / 420 + terrace * 3) * (8 + part * 24);
    const tall = 15 + part * 24;
    fill(c, linear(c, 0, 0, W, 0, [[0, "#7fc3cf"], [0.55, "#d9ecd6"], [0.74, "#fff0c4"], [1, "#a4d5d2"]]), () => {
      for (let x = -10; x <= W + 10; x += 14) c.lineTo(x, wave(x));
      for (let x = W + 10; x >= -10; x -= 14) c.lineTo(x, wave(x) + tall);
    });
    stroke(c, terrace % 2 ? "#3f8a52" : "#569b57", 6 + part * 8, () => {
      for (let x = -10; x <= W + 10; x += 14) c.lineTo(x, wave(x) + tall);
    });
    for (let tuft = 0; tuft < 26 + terrace * 4; tuft++) {
      const x = next() * W;
      stroke(c, "#4b9a55", 1.5 + part * 2, () => (c.moveTo(x - 3, wave(x) + tall * 0.7 - 7 - part * 6), c.lineTo(x, wave(x) + tall * 0.7), c.lineTo(x + 4, wave(x) + tall * 0.7 - 8 - part * 6)));
    }
  }
  // A farmhouse among trees.
  within(c, {}, () => {
    c.translate(102, 0);
    for (const [x, y, r] of [[270, 696, 30], [426, 704, 24], [250, 708, 20]]) disc(c, linear(c, x + r, y - r, x - r, y + r, [[0, "#6fb866"], [1, "#22624a"]]), x, y, r, r * 1.05);
    rect(c, linear(c, 290, 0, 400, 0, [[0, "#d9d2c2"], [1, "#fffaf0"]]), 296, 684, 104, 44);
    poly(c, "#3f4a5c", [280, 688], [300, 656], [396, 656], [418, 688]);
    for (const x of [316, 346, 372]) rect(c, "#5b6470", x, 698, 15, 18);
  });

  // The viaduct, straight and slender.
  for (let pier = 0; pier < 7; pier++) {
    const x = 90 + pier * 240;
    fill(c, linear(c, x - 30, 0, x + 30, 0, [[0, "#8c9aa5"], [0.45, "#d5d9d8"], [1, "#fff4de"]]), () => {
      c.moveTo(x - 50, RAIL + 62);
      c.bezierCurveTo(x - 26, RAIL + 74, x - 24, RAIL + 92, x - 22, RAIL + 120);
      c.lineTo(x - 25, 905), c.lineTo(x + 25, 905), c.lineTo(x + 22, RAIL + 120);
      c.bezierCurveTo(x + 24, RAIL + 92, x + 26, RAIL + 74, x + 50, RAIL + 62);
    });
    disc(c, clear("#1d5a45", 0.35), x + 8, 902, 60, 14);
  }
  rect(c, down(c, RAIL + 10, RAIL + 66, [0, "#f4efe2"], [0.3, "#cfd2cf"], [0.34, "#a9b3b8"], [1, "#8796a2"]), 0, RAIL + 10, W, 56);
  rect(c, "#fffaf0", 0, RAIL + 8, W, 5);
  for (let joint = 0; joint < 14; joint++) rect(c, clear("#5f6f7c", 0.4), 90 + joint * 120, RAIL + 26, 2, 40);
  // Masts and the wire.
  for (let mast = 0; mast < 8; mast++) {
    const x = 30 + mast * 226;
    rect(c, "#7d8c98", x - 3, RAIL - 160, 6, 172);
    stroke(c, "#7d8c98", 3, () => (c.moveTo(x, RAIL - 150), c.lineTo(x + 40, RAIL - 138), c.moveTo(x, RAIL - 126), c.lineTo(x + 40, RAIL - 138)));
  }
  for (const [y, sag] of [[-152, 12], [-134, 3]]) stroke(c, clear("#55646f", 0.8), 2, () => {
    for (let x = -10; x <= W + 10; x += 10) c.lineTo(x, RAIL + y + sag * Math.sin((((x - 30) % 226) / 226) * Math.PI));
  });

  // The train: one body with a long nose.
  const [top, foot, nose] = [RAIL - 98, RAIL - 4, 1420];
  const body = () => {
    c.moveTo(-20, foot);
    c.lineTo(-20, top);
    c.lineTo(nose - 330, top);
    c.bezierCurveTo(nose - 190, top + 2, nose - 110, top + 30, nose - 40, top + 62);
    c.bezierCurveTo(nose - 6, top + 76, nose + 6, foot - 10, nose - 22, foot);
    c.closePath();
  };
  disc(c, clear("#39505c", 0.4), 700, RAIL + 8, 740, 9);
  for (let bogie = 0; bogie < 12; bogie++) {
    const x = 40 + bogie * 118 + (bogie % 2 ? -8 : 0);
    if (x < nose - 90) rect(c, "#35434e", x - 34, foot - 6, 68, 13, 5);
  }
  fill(c, down(c, top, foot, [0, "#ffffff"], [0.5, "#f3f6f7"], [0.78, "#cfdbe2"], [1, "#8fa4b2"]), body);
  within(c, {}, () => {
    c.beginPath();
    body();
    c.clip();
    // The line of the windows, running out into the nose.
    fill(c, down(c, top + 20, top + 54, [0, "#1d3145"], [1, "#35566d"]), () => {
      c.moveTo(-20, top + 22), c.lineTo(nose - 330, top + 22);
      c.quadraticCurveTo(nose - 250, top + 24, nose - 214, top + 50);
      c.lineTo(-20, top + 50);
    });
    for (let window = 0; window < 30; window++) {
      const x = -8 + window * 37;
      if (x > nose - 352) break;
      if (window % 8 === 7) {
        rect(c, "#eef3f5", x - 2, top + 14, 30, 68, 4);
        rect(c, "#2a4257", x + 6, top + 24, 14, 24, 4);
        continue;
      }
      rect(c, linear(c, x, top + 24, x + 30, top + 50, [[0, "#6fa9c4"], [0.5, "#ffe9bd"], [1, "#8fc0cf"]]), x, top + 25, 30, 22, 5);
      if (next() < 0.55) disc(c, clear("#1d3145", 0.75), x + 9 + next() * 10, top + 44, 6, 7);
    }
    fill(c, linear(c, 200, 0, nose, 0, [[0, "#1f8fb8"], [0.7, "#0f6fa6"], [1, "#0a4f86"]]), () => {
      c.moveTo(-20, top + 66), c.lineTo(nose - 300, top + 66);
      c.bezierCurveTo(nose - 170, top + 66, nose - 110, top + 72, nose + 10, top + 88);
      c.lineTo(nose + 10, top + 97);
      c.bezierCurveTo(nose - 140, top + 78, nose - 200, top + 75, nose - 300, top + 75), c.lineTo(-20, top + 75);
    });
    rect(c, "#f2a33a", -20, top + 79, nose - 290, 3);
    fill(c, linear(c, nose - 210, top, nose - 110, top + 50, [[0, "#12202e"], [0.6, "#2f5068"], [1, "#9cc6d6"]]), () => {
      c.moveTo(nose - 236, top + 10);
      c.bezierCurveTo(nose - 176, top + 16, nose - 136, top + 30, nose - 100, top + 46);
      c.lineTo(nose - 150, top + 48);
      c.quadraticCurveTo(nose - 190, top + 30, nose - 236, top + 10);
    });
    for (const seam of [-8, 288, 584, 880]) rect(c, clear("#4d6472", 0.6), seam - 14, top, 3, 100);
    rect(c, clear("#ffffff", 0.9), -20, top + 4, nose - 320, 4, 2);
  });
  fill(c, "#fff8dc", () => c.ellipse(nose - 56, top + 66, 17, 5, 0.42, 0, Math.PI * 2));
  glow(c, nose - 50, top + 68, 60, "#fff4cf", 0.8);
  stroke(c, "#5f707c", 4, () => (c.moveTo(420, top), c.lineTo(446, top - 22), c.lineTo(418, top - 36), c.moveTo(396, top - 37), c.lineTo(440, top - 37)));
  // Wind, egrets, and leaves before us.
  for (let streak = 0; streak < 9; streak++) rect(c, clear("#ffffff", 0.4), -40 + next() * 500, RAIL - 84 + next() * 90, 120 + next() * 240, 2.5, 2);
  const egret = (x, y, s) => {
    within(c, { lineCap: "round" }, () => stroke(c, "#ffffff", 5 * s, () => {
      c.moveTo(x - 46 * s, y - 16 * s), c.quadraticCurveTo(x - 22 * s, y - 26 * s, x, y), c.quadraticCurveTo(x + 20 * s, y - 30 * s, x + 46 * s, y - 26 * s);
    }));
    disc(c, "#ffffff", x + 4 * s, y + 2 * s, 15 * s, 5 * s);
  };
  egret(450, 250, 0.9), egret(538, 214, 0.7), egret(610, 262, 0.55), egret(388, 306, 0.5);
  for (let stalk = 0; stalk < 9; stalk++) {
    const right = stalk > 4;
    const x = right ? 1490 + (stalk - 4) * 30 : -10 + stalk * 26;
    const [h, lean] = [250 + next() * 260, (right ? -1 : 1) * (20 + next() * 60)];
    stroke(c, "#14553f", 8, () => (c.moveTo(x, 910), c.quadraticCurveTo(x, 910 - h / 2, x + lean, 910 - h)));
    for (let leaf = 0; leaf < 15; leaf++) {
      const part = 0.25 + (0.75 * leaf) / 15;
      const [lx, ly] = [x + lean * part * part, 910 - h * part];
      const way = leaf % 2 ? 1 : -1;
      fill(c, leaf % 3 ? "#1b6a48" : "#2f8a55", () => {
        c.moveTo(lx, ly), c.quadraticCurveTo(lx + way * 34, ly - 30, lx + way * (60 + next() * 24), ly + 6), c.quadraticCurveTo(lx + way * 30, ly, lx, ly);
      });
    }
  }
  vignette(c, 0.2, "#0a3a3a");
}
