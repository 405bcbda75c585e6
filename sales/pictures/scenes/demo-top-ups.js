/** A wallet with tickets in it, and coins. */
import { clear, disc, down, fill, glow, H, linear, poly, radial, random, rect, stroke, vignette, W, within } from "./brush.js";

function shadowed(c, blur, y, opacity, draw) {
  within(c, { shadowColor: `rgba(20, 12, 60, ${opacity})`, shadowBlur: blur, shadowOffsetY: y }, draw);
}

function coin(c, x, y, r, squash, shade) {
  within(c, {}, () => {
    c.translate(x, y);
    shadowed(c, 18, 10, 0.35, () => fill(c, "#a8641c", () => c.ellipse(0, r * 0.16, r, r * squash, 0, 0, Math.PI * 2)));
    rect(c, linear(c, -r, 0, r, 0, [[0, "#b8741f"], [0.3, "#ffd36b"], [0.6, "#e09a2c"], [1, "#8f5314"]]), -r, 0, r * 2, r * 0.16);
    fill(c, linear(c, -r, -r, r, r, [[0, "#fff2b8"], [0.5, shade], [1, "#d98a22"]]), () => c.ellipse(0, 0, r, r * squash, 0, 0, Math.PI * 2));
    stroke(c, "#c27a1c", r * 0.06, () => c.ellipse(0, 0, r * 0.78, r * 0.78 * squash, 0, 0, Math.PI * 2));
    // A star: of no country.
    c.scale(1, squash);
    fill(c, "#c27a1c", () => {
      for (let at = 0; at < 10; at++) {
        const [angle, reach] = [(at * Math.PI) / 5 - Math.PI / 2, at % 2 ? r * 0.22 : r * 0.5];
        c.lineTo(Math.cos(angle) * reach, Math.sin(angle) * reach);
      }
    });
  });
}

function ticket(c, x, y, w, h, turn, colours, motif) {
  within(c, {}, () => {
    c.translate(x, y);
    c.rotate(turn);
    const shape = () => {
      const [l, t, r, b, notch] = [-w / 2, -h / 2, w / 2, h / 2, 15];
      const cut = r - w * 0.27;
      c.moveTo(l + 12, t), c.lineTo(cut - notch, t), c.arc(cut, t, notch, Math.PI, 0, true), c.lineTo(r - 12, t), c.quadraticCurveTo(r, t, r, t + 12);
      c.lineTo(r, b - 12), c.quadraticCurveTo(r, b, r - 12, b), c.lineTo(cut + notch, b), c.arc(cut, b, notch, 0, Math.PI, true), c.lineTo(l + 12, b), c.quadraticCurveTo(l, b, l, b - 12);
      c.lineTo(l, t + 12), c.quadraticCurveTo(l, t, l + 12, t);
    };
    shadowed(c, 26, 12, 0.35, () => fill(c, linear(c, -w / 2, -h / 2, w / 2, h / 2, colours), shape));
    within(c, {}, () => {
      c.setLineDash([7, 8]);
      stroke(c, clear("#ffffff", 0.75), 3, () => (c.moveTo(w / 2 - w * 0.27, -h / 2 + 22), c.lineTo(w / 2 - w * 0.27, h / 2 - 22)));
    });
    within(c, {}, () => {
      c.beginPath(), c.roundRect(-w / 2 + 20, -h / 2 + 20, w * 0.73 - 46, h - 40, 8), c.clip();
      motif(w, h);
    });
    for (let bar = 0, at = -h / 2 + 24; at < h / 2 - 26; bar++) {
      const tall = [3, 6, 2, 8, 4, 3, 7][bar % 7];
      rect(c, clear("#ffffff", 0.9), w / 2 - w * 0.27 + 26, at, w * 0.27 - 48, tall);
      at += tall + 5;
    }
  });
}

export default function draw(c) {
  rect(c, linear(c, 0, 0, W, H, [[0, "#ffb76b"], [0.45, "#ff8a7a"], [1, "#8a5bd6"]]), 0, 0, W, H);
  glow(c, 640, 300, 760, "#fff0c0", 0.42);
  within(c, { filter: "blur(2px)" }, () => {
    for (const [x, y, r, o] of [[170, 180, 150, 0.1], [1440, 210, 210, 0.09], [1290, 90, 60, 0.14], [90, 660, 90, 0.1], [1540, 640, 120, 0.08]]) disc(c, clear("#ffffff", o), x, y, r);
  });
  fill(c, linear(c, 0, 640, 0, 900, [[0, "#6a3fb8"], [1, "#3a2386"]]), () => (c.moveTo(0, 720), c.bezierCurveTo(400, 640, 1100, 640, 1600, 740), c.lineTo(1600, 900), c.lineTo(0, 900)));
  fill(c, linear(c, 0, 640, 0, 760, [[0, clear("#ffffff", 0.2)], [1, clear("#ffffff", 0)]]), () => (c.moveTo(0, 720), c.bezierCurveTo(400, 640, 1100, 640, 1600, 740), c.lineTo(1600, 780), c.bezierCurveTo(1100, 690, 400, 690, 0, 770)));
  within(c, { filter: "blur(18px)" }, () => disc(c, clear("#1c0f4d", 0.6), 800, 806, 500, 46));

  // The back of the wallet, then what is in it.
  within(c, {}, () => {
    c.translate(800, 520);
    c.rotate(-0.035);
    shadowed(c, 50, 26, 0.4, () => rect(c, linear(c, -420, -200, 420, 260, [[0, "#2b4f9c"], [1, "#16295f"]]), -430, -170, 860, 430, 54));
    rect(c, linear(c, 0, -150, 0, 40, [[0, "#0d1a44"], [1, "#1c3474"]]), -404, -146, 808, 330, 40);
  });
  ticket(c, 634, 392, 520, 232, -0.2, [[0, "#ff5f8f"], [1, "#c22f86"]], (w, h) => {
    rect(c, down(c, -h / 2, h / 2, [0, "#3d1a72"], [1, "#ff8a6b"]), -w / 2, -h / 2, w, h);
    for (let at = -3; at <= 3; at++) poly(c, clear("#ffe6a8", 0.4), [-70 + at * 10, 96], [-70 + at * 62 - 22, -h / 2], [-70 + at * 62 + 22, -h / 2]);
    for (let head = 0; head < 12; head++) disc(c, "#1d0b3d", -w / 2 + 26 + head * 34, 84 + (head % 3) * 6, 17, 20), disc(c, "#1d0b3d", -w / 2 + 26 + head * 34, 118, 27, 24);
  });
  ticket(c, 926, 366, 540, 236, 0.09, [[0, "#3fd0b6"], [1, "#1c8fa8"]], (w, h) => {
    rect(c, down(c, -h / 2, h / 2, [0, "#8fe0f0"], [0.7, "#fff3c9"], [1, "#ffd796"]), -w / 2, -h / 2, w, h);
    disc(c, "#fffdf0", 20, -16, 34);
    poly(c, "#4fa69c", [-w / 2, 60], [-170, -36], [-96, 30], [-30, -24], [60, 40], [150, -10], [220, 70]);
    rect(c, "#2c6f74", -w / 2, 56, w, 90);
    rect(c, "#fffaf0", -w / 2, 26, w * 0.52, 36, 14), rect(c, "#1d4a66", -w / 2, 34, w * 0.48, 12, 6);
    fill(c, "#fffaf0", () => (c.moveTo(-30, 26), c.quadraticCurveTo(46, 28, 74, 62), c.lineTo(-30, 62)));
  });
  // Two cards.
  within(c, {}, () => {
    c.translate(1090, 428);
    c.rotate(0.2);
    shadowed(c, 24, 10, 0.35, () => rect(c, linear(c, -150, -160, 150, 160, [[0, "#ffe08a"], [1, "#ff9a4d"]]), -150, -150, 300, 330, 24));
    rect(c, linear(c, -30, 0, 40, 0, [[0, "#fff6d6"], [1, "#d9a85a"]]), -116, -112, 62, 48, 9);
    for (const y of [-98, -84]) rect(c, clear("#a8722c", 0.7), -116, y, 62, 3);
    disc(c, clear("#ffffff", 0.6), 84, -88, 28), disc(c, clear("#ff6a5a", 0.6), 112, -88, 28);
  });
  // The front of the wallet, with its seam and clasp.
  within(c, {}, () => {
    c.translate(800, 520);
    c.rotate(-0.035);
    const front = () => {
      c.moveTo(-430, -20);
      c.bezierCurveTo(-300, 8, -160, 22, 0, 22);
      c.bezierCurveTo(160, 22, 300, 8, 430, -20);
      c.lineTo(430, 206), c.quadraticCurveTo(430, 264, 372, 264), c.lineTo(-372, 264), c.quadraticCurveTo(-430, 264, -430, 206);
      c.closePath();
    };
    shadowed(c, 30, -8, 0.4, () => fill(c, linear(c, -430, -20, 430, 264, [[0, "#5b8df0"], [0.45, "#3a68cf"], [1, "#234299"]]), front));
    fill(c, radial(c, -180, 40, 520, [[0, clear("#ffffff", 0.26)], [1, clear("#ffffff", 0)]]), front);
    within(c, { lineCap: "round" }, () => {
      c.setLineDash([15, 12]);
      stroke(c, clear("#cfe0ff", 0.75), 4, () => {
        c.moveTo(-406, 12), c.bezierCurveTo(-290, 34, -150, 46, 0, 46), c.bezierCurveTo(150, 46, 290, 34, 406, 12);
        c.moveTo(-408, 30), c.lineTo(-408, 196), c.quadraticCurveTo(-408, 240, -364, 240), c.lineTo(364, 240), c.quadraticCurveTo(408, 240, 408, 196), c.lineTo(408, 30);
      });
    });
    shadowed(c, 20, 8, 0.4, () => rect(c, linear(c, 200, 90, 440, 200, [[0, "#2f56b4"], [1, "#1c3680"]]), 262, 92, 206, 98, 49));
    disc(c, linear(c, 286, 110, 340, 170, [[0, "#fff2b8"], [0.5, "#ffc64f"], [1, "#b8741f"]]), 312, 141, 27);
    stroke(c, "#b8741f", 3, () => c.ellipse(312, 141, 18, 18, 0, 0, Math.PI * 2));
  });
  // Coins: a stack, some that lie, some that fall in.
  for (let at = 0; at < 6; at++) coin(c, 236 + (at % 2) * 5, 788 - at * 24, 78, 0.34, "#ffcf5f");
  for (let at = 0; at < 3; at++) coin(c, 384 - (at % 2) * 5, 834 - at * 24, 78, 0.34, "#ffd873");
  for (let at = 0; at < 4; at++) coin(c, 1372 + (at % 2) * 6, 812 - at * 24, 78, 0.34, "#ffcf5f");
  coin(c, 1236, 852, 74, 0.34, "#ffd873");
  for (const [x, y, r, squash] of [[330, 250, 52, 0.9], [1310, 210, 58, 0.86], [218, 420, 38, 0.6], [1420, 420, 42, 0.7], [720, 96, 40, 0.8]]) {
    coin(c, x, y, r, squash, "#ffd467");
    glow(c, x - r * 0.4, y - r * 0.5, r * 0.9, "#fff6d0", 0.7);
  }
  const next = random(4);
  for (let spark = 0; spark < 16; spark++) {
    const [x, y, s] = [120 + next() * 1360, 50 + next() * 360, 5 + next() * 10];
    poly(c, clear("#ffffff", 0.85), [x, y - s], [x + s * 0.22, y - s * 0.22], [x + s, y], [x + s * 0.22, y + s * 0.22], [x, y + s], [x - s * 0.22, y + s * 0.22], [x - s, y], [x - s * 0.22, y - s * 0.22]);
  }
  vignette(c, 0.22, "#2a1260");
}
