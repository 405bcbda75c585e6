/** Draws seats by WebGL2: positions are sent once, a state byte a seat when it changes, one instanced draw a frame. */

import type { Camera } from "./camera.ts";
import { type Colours, TIER_COLOURS, rgb } from "./colours.ts";

/** Whoever draws the seats. */
export interface SeatRenderer {
  readonly name: "webgl2" | "canvas2d";
  /** Sets the state byte of each seat. */
  setStates(states: Uint8Array): void;
  setColours(colours: Colours): void;
  /** Draws the seats, `fade` (0 to 1) as visible as that. */
  draw(camera: Camera, pixelRatio: number, fade: number): void;
  dispose(): void;
}

const VERTEX = `#version 300 es
layout(location = 0) in vec2 place;
layout(location = 1) in float tier;
layout(location = 2) in float state;
uniform vec4 view;
uniform float half_size;
uniform float pixel;
uniform vec3 palette[${TIER_COLOURS}];
out vec2 corner;
flat out vec3 colour;
flat out int kind;
flat out float soft;
void main() {
  corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
  kind = int(state + 0.5);
  colour = palette[int(tier + 0.5)];
  float size = half_size * (kind == 3 || kind == 5 ? 1.18 : kind == 1 ? 0.86 : 1.0);
  soft = pixel / size;
  gl_Position = vec4((place + corner * size) * view.xy + view.zw, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec2 corner;
flat in vec3 colour;
flat in int kind;
flat in float soft;
uniform vec3 text;
uniform vec3 ground;
uniform vec3 quiet;
uniform vec3 bad;
uniform float fade;
out vec4 shown;
float box(vec2 p, float half_side, float radius) {
  vec2 q = abs(p) - half_side + radius;
  return length(max(q, 0.0)) + min(max(q.x, q.y), 0.0) - radius;
}
float line(vec2 p, vec2 a, vec2 b) {
  vec2 pa = p - a, ba = b - a;
  return length(pa - ba * clamp(dot(pa, ba) / dot(ba, ba), 0.0, 1.0));
}
float cover(float distance) { return clamp(0.5 - distance / soft, 0.0, 1.0); }
void main() {
  float edge = box(corner, 0.94, 0.4);
  vec4 mix_ = vec4(0.0);
  if (kind == 0) mix_ = vec4(colour, cover(edge));
  else if (kind == 1) mix_ = vec4(quiet, cover(abs(edge + 0.12) - 0.07) * 0.75);
  else if (kind == 2) mix_ = vec4(quiet, cover(length(corner) - 0.3) * 0.6);
  else if (kind == 3) {
    float tick = min(line(corner, vec2(-0.45, 0.0), vec2(-0.12, 0.38)), line(corner, vec2(-0.12, 0.38), vec2(0.48, -0.38)));
    mix_ = vec4(mix(text, ground, cover(tick - 0.13)), cover(edge));
  } else if (kind == 4) {
    float cross_ = min(line(corner, vec2(-0.5, -0.5), vec2(0.5, 0.5)), line(corner, vec2(-0.5, 0.5), vec2(0.5, -0.5)));
    mix_ = vec4(bad, max(cover(cross_ - 0.14), cover(abs(edge + 0.1) - 0.1)));
  } else if (kind == 5) mix_ = vec4(mix(text, colour, cover(edge + 0.28)), cover(edge));
  else mix_ = vec4(quiet, cover(edge) * 0.3);
  float alpha = mix_.a * fade;
  shown = vec4(mix_.rgb * alpha, alpha);
}`;

function compile(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
    const shader = gl.createShader(type);
    if (shader === null) throw new Error("no shader");
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) ?? "not linked");
  return program;
}

/** The renderer by WebGL2. */
export class WebglRenderer implements SeatRenderer {
  readonly name = "webgl2";
  private readonly program: WebGLProgram;
  private readonly stateBuffer: WebGLBuffer;
  private readonly places = new Map<string, WebGLUniformLocation | null>();

  /** Throws if the shaders are refused. `tiers` is the colour of each seat's tier, by its number. */
  constructor(private readonly gl: WebGL2RenderingContext, private readonly xy: Float32Array, tiers: Uint8Array, private readonly pitch: number) {
    this.program = compile(gl);
    gl.useProgram(this.program);
    const attribute = (at: number, size: number, type: number, data: Float32Array | Uint8Array, usage: number): WebGLBuffer => {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, data, usage);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, size, type, false, 0, 0);
      gl.vertexAttribDivisor(at, 1);
      return buffer;
    };
    attribute(0, 2, gl.FLOAT, xy, gl.STATIC_DRAW);
    attribute(1, 1, gl.UNSIGNED_BYTE, tiers, gl.STATIC_DRAW);
    this.stateBuffer = attribute(2, 1, gl.UNSIGNED_BYTE, new Uint8Array(tiers.length), gl.DYNAMIC_DRAW);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  private uniform(name: string): WebGLUniformLocation | null {
    let place = this.places.get(name);
    if (place === undefined) {
      place = this.gl.getUniformLocation(this.program, name);
      this.places.set(name, place);
    }
    return place;
  }

  setStates(states: Uint8Array): void {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.stateBuffer);
    this.gl.bufferSubData(this.gl.ARRAY_BUFFER, 0, states);
  }

  setColours(colours: Colours): void {
    const three = (name: string, hex: string): void => this.gl.uniform3fv(this.uniform(name), [...rgb(hex)]);
    three("text", colours.text);
    three("ground", colours.raised);
    three("quiet", colours.soft);
    three("bad", colours.bad);
    this.gl.uniform3fv(this.uniform("palette"), colours.tiers.flatMap((hex) => [...rgb(hex)]));
  }

  draw(camera: Camera, pixelRatio: number, fade: number): void {
    const { gl } = this;
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (fade <= 0) return;
    const [sx, sy] = [(2 * camera.scale) / camera.width, (-2 * camera.scale) / camera.height];
    gl.uniform4f(this.uniform("view"), sx, sy, -camera.x * sx, -camera.y * sy);
    gl.uniform1f(this.uniform("half_size"), this.pitch * 0.42);
    gl.uniform1f(this.uniform("pixel"), 1.2 / (camera.scale * pixelRatio));
    gl.uniform1f(this.uniform("fade"), fade);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, this.xy.length / 2);
  }

  dispose(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}
