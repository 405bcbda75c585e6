/** What the scenes are drawn with: a canvas of 1600 × 900, and the same random numbers each time. */
export const W = 1600;
export const H = 900;

/** Random numbers from 0 to 1, the same for each seed (mulberry32). */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A colour `#rrggbb` with an opacity. */
export const clear = (colour, opacity) => `${colour}${Math.round(Math.max(0, Math.min(1, opacity)) * 255).toString(16).padStart(2, "0")}`;

export const mix = (from, to, part) => from + (to - from) * part;

/** A linear gradient: `stops` is a list of [part, colour]. */
export function linear(c, x0, y0, x1, y1, stops) {
  const gradient = c.createLinearGradient(x0, y0, x1, y1);
  for (const [part, colour] of stops) gradient.addColorStop(part, colour);
  return gradient;
}

export const down = (c, y0, y1, ...stops) => linear(c, 0, y0, 0, y1, stops);

export function radial(c, x, y, r, stops) {
  const gradient = c.createRadialGradient(x, y, 0, x, y, r);
  for (const [part, colour] of stops) gradient.addColorStop(part, colour);
  return gradient;
}

export function fill(c, style, path) {
  c.fillStyle = style;
  c.beginPath();
  path();
  c.fill();
}

export function rect(c, style, x, y, w, h, r = 0) {
  fill(c, style, () => (r > 0 ? c.roundRect(x, y, w, h, r) : c.rect(x, y, w, h)));
}

export const disc = (c, style, x, y, r, ry = r) => fill(c, style, () => c.ellipse(x, y, r, ry, 0, 0, Math.PI * 2));

/** A closed polygon of [x, y]. */
export function poly(c, style, ...points) {
  fill(c, style, () => {
    for (const [x, y] of points) c.lineTo(x, y);
    c.closePath();
  });
}

export function stroke(c, style, width, path) {
  c.strokeStyle = style;
  c.lineWidth = width;
  c.beginPath();
  path();
  c.stroke();
}

/** Draws with other settings of the canvas, which are then as before. */
export function within(c, settings, draw) {
  c.save();
  Object.assign(c, settings);
  draw();
  c.restore();
}

/** Light that adds to what is there. */
export function glow(c, x, y, r, colour, opacity = 1, squash = 1) {
  within(c, { globalCompositeOperation: "lighter" }, () => {
    c.translate(x, y);
    c.scale(1, squash);
    disc(c, radial(c, 0, 0, r, [[0, clear(colour, opacity)], [0.25, clear(colour, opacity * 0.45)], [0.6, clear(colour, opacity * 0.1)], [1, clear(colour, 0)]]), 0, 0, r);
  });
}

/** A beam of light from a lamp: at `angle` degrees from straight up, to the right. */
export function beam(c, x, y, angle, length, spread, colour, opacity, start = 3) {
  within(c, { globalCompositeOperation: "lighter" }, () => {
    c.translate(x, y);
    c.rotate((angle * Math.PI) / 180);
    const style = linear(c, 0, 0, 0, -length, [[0, clear(colour, opacity)], [0.35, clear(colour, opacity * 0.45)], [1, clear(colour, 0)]]);
    c.filter = `blur(${Math.max(1.5, spread * 0.05)}px)`;
    for (const part of [1, 0.66, 0.33]) {
      poly(c, style, [-start * part, 0], [start * part, 0], [spread * part, -length], [-spread * part, -length]);
    }
  });
}

/** Noise of one dimension, smooth, -1 to 1, in octaves. */
export function noise(seed, octaves = 5, gain = 0.5) {
  const next = random(seed);
  const tables = Array.from({ length: octaves }, () => Array.from({ length: 256 }, () => next() * 2 - 1));
  return (x) => {
    let [sum, size, most] = [0, 1, 0];
    tables.forEach((table, octave) => {
      const at = x * 2 ** octave + 100;
      const [cell, part] = [Math.floor(at), at - Math.floor(at)];
      const ease = part * part * (3 - 2 * part);
      sum += mix(table[cell & 255], table[(cell + 1) & 255], ease) * size;
      most += size;
      size *= gain;
    });
    return sum / most;
  };
}

/** A range of hills from edge to edge; `shape(x)` gives the height above `base`. */
export function ridge(c, style, base, shape, bottom = H) {
  fill(c, style, () => {
    c.moveTo(0, bottom);
    for (let x = 0; x <= W; x += 3) c.lineTo(x, base - shape(x));
    c.lineTo(W, bottom);
    c.closePath();
  });
}

/** Stars, few of them bright. */
export function stars(c, seed, count, top, bottom, colour = "#ffffff") {
  const next = random(seed);
  for (let at = 0; at < count; at++) {
    const [x, y, size] = [next() * W, mix(top, bottom, next() ** 1.4), next()];
    const fade = 1 - ((y - top) / (bottom - top)) ** 2;
    disc(c, clear(colour, (0.25 + 0.7 * next()) * fade), x, y, 0.6 + size ** 6 * 1.7);
    if (size > 0.985) glow(c, x, y, 16, "#bcd4ff", 0.6 * fade);
  }
}

/** People seen from behind: heads and shoulders, some with raised arms, lit from before them. */
export function crowd(c, seed, y, size, style, { step = 1.25, arms = 0.3, rim = null, from = -40, to = W + 40, phones = 0, skip = () => false } = {}) {
  const next = random(seed);
  for (let x = from; x < to; x += size * step * (0.8 + next() * 0.45)) {
    const [lift, r] = [(next() - 0.5) * size * 0.55, size * (0.33 + next() * 0.05)];
    const [arm, side, reach, phone] = [next() < arms, next() < 0.5 ? -1 : 1, 0.9 + next() * 0.7, next() < phones];
    const both = next() < 0.45;
    if (skip(x)) continue;
    const head = y - size * 0.75 + lift;
    const body = () => {
      c.ellipse(x, head, r * 0.84, r, 0, 0, Math.PI * 2);
      c.moveTo(x - size * 0.8, y + size * 3);
      c.lineTo(x - size * 0.8, head + r * 2.9);
      c.bezierCurveTo(x - size * 0.8, head + r * 1.75, x - size * 0.5, head + r * 1.72, x - size * 0.24, head + r * 1.4);
      c.quadraticCurveTo(x - size * 0.14, head + r * 1.2, x - size * 0.14, head + r * 0.6);
      c.lineTo(x + size * 0.14, head + r * 0.6);
      c.quadraticCurveTo(x + size * 0.14, head + r * 1.2, x + size * 0.24, head + r * 1.4);
      c.bezierCurveTo(x + size * 0.5, head + r * 1.72, x + size * 0.8, head + r * 1.75, x + size * 0.8, head + r * 2.9);
      c.lineTo(x + size * 0.8, y + size * 3);
    };
    if (rim !== null) {
      within(c, {}, () => {
        c.translate(0, -Math.max(1, size * 0.05));
        fill(c, rim, body);
      });
    }
    fill(c, style, body);
    if (!arm) continue;
    for (const hand of both ? [-1, 1] : [side]) {
      const [ex, ey] = [x + hand * size * 0.95, head + r * 0.5];
      const [hx, hy] = [x + hand * size * (0.15 + reach * 0.5), head - size * reach];
      within(c, { lineCap: "round", lineJoin: "round" }, () => {
        stroke(c, style, size * 0.18, () => {
          c.moveTo(x + hand * size * 0.62, head + r * 2.4);
          c.quadraticCurveTo(ex, ey, hx, hy);
        });
      });
      disc(c, style, hx, hy, size * 0.13, size * 0.17);
      if (phone) {
        within(c, {}, () => {
          c.translate(hx, hy - size * 0.2);
          c.rotate(hand * 0.12);
          rect(c, "#eaf4ff", -size * 0.11, -size * 0.3, size * 0.22, size * 0.4, size * 0.04);
        });
        glow(c, hx, hy - size * 0.3, size * 1.1, "#a9cdff", 0.55);
      }
    }
  }
}

/** A conifer. */
export function pine(c, style, x, y, height, next) {
  const width = height * 0.34;
  fill(c, style, () => {
    c.moveTo(x, y - height);
    for (let at = 1; at <= 7; at++) {
      const [part, wide] = [at / 7, width * (at / 7) ** 0.85];
      c.lineTo(x + wide * 0.5 * (0.85 + next() * 0.3), y - height * (1 - part * 0.95));
      c.lineTo(x + wide * 0.22, y - height * (1 - part * 0.95) - height * 0.02);
    }
    for (let at = 7; at >= 1; at--) {
      const [part, wide] = [at / 7, width * (at / 7) ** 0.85];
      c.lineTo(x - wide * 0.22, y - height * (1 - part * 0.95) - height * 0.02);
      c.lineTo(x - wide * 0.5 * (0.85 + next() * 0.3), y - height * (1 - part * 0.95));
    }
    c.closePath();
  });
  rect(c, style, x - height * 0.018, y - height * 0.06, height * 0.036, height * 0.1);
}

/** Darkens the corners. */
export function vignette(c, opacity = 0.45, colour = "#05060f") {
  c.fillStyle = radial(c, W / 2, H * 0.48, W * 0.62, [[0, clear(colour, 0)], [0.6, clear(colour, 0)], [1, clear(colour, opacity)]]);
  c.fillRect(0, 0, W, H);
}
