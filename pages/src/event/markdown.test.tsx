import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComponentChild, ComponentChildren, VNode } from "preact";

import { Markdown } from "./markdown.tsx";

const escaped = (text: string) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
/** What the elements are, as markup with all text escaped. */
function shown(node: ComponentChildren): string {
  if (Array.isArray(node)) return (node as ComponentChild[]).map(shown).join("");
  if (node === null || node === undefined || typeof node === "boolean") return "";
  if (typeof node !== "object") return escaped(String(node));
  const { type, props } = node as VNode<Record<string, unknown>>;
  const { children, ...others } = props;
  if (typeof type === "function") return shown((type as (props: object) => ComponentChildren)(props));
  assert.equal("dangerouslySetInnerHTML" in others, false);
  const attributes = Object.entries(others).map(([name, value]) => ` ${name}="${escaped(String(value))}"`).join("");
  return `<${type}${attributes}>${shown(children as ComponentChildren)}</${type}>`;
}
const of = (text: string) => shown(<Markdown text={text} />).replace(/^<div class="markdown">|<\/div>$/g, "");

test("the usual is there, and headings begin below those of the page", () => {
  assert.equal(of("The **closing** _night_.\n\n- one\n- two"), "<p>The <strong>closing</strong> <em>night</em>.</p><ul><li>one</li><li>two</li></ul>");
  assert.equal(of("# A\n## B\n### C\n###### D"), "<h3>A</h3><h4>B</h4><h5>C</h5><h6>D</h6>");
  assert.equal(of("### A\n# B\n### C\n## D"), "<h3>A</h3><h3>B</h3><h4>C</h4><h4>D</h4>");
  assert.equal(of("> # A"), "<blockquote><p><strong>A</strong></p></blockquote>");
  assert.equal(of("3. a\n4. b"), `<ol start="3"><li>a</li><li>b</li></ol>`);
  assert.equal(of("> a `b` & c &amp; &#x4e2d;&copy; \\*"), "<blockquote><p>a <code>b</code> &#38; c &#38; 中© *</p></blockquote>");
  assert.equal(of("巡演**终场**。"), "<p>巡演<strong>终场</strong>。</p>");
});

test("links lead to https alone, and give nothing away", () => {
  assert.equal(of("[a](https://example.org/x)"), `<p><a href="https://example.org/x" rel="noopener nofollow">a</a></p>`);
  for (const url of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "&#106;avascript:alert(1)", "data:text/html,x", "http://example.org", "//example.org", "/my/orders", "vbscript:x", "https://u:p@example.org", "<javascript:alert(1)>"]) {
    assert.doesNotMatch(of(`[a](${url})`), /<a/, url);
  }
  assert.doesNotMatch(of("<javascript:alert(1)>"), /<a/);
});

test("HTML stays text, and no picture is loaded from elsewhere", () => {
  for (const text of [
    "<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b", "<svg onload=alert(1)>", "<a href=\"javascript:alert(1)\">x</a>", "![x](https://evil.example/x.png)", "![<img src=x onerror=alert(1)>](x)",
    "`<script>`", "```html\n<script>alert(1)</script>\n```", "[<img src=x onerror=alert(1)>](https://example.org)", "&lt;script&gt;", "<!-- x --><iframe src=x>", "# <style>*{display:none}</style>", "[a]: javascript:alert(1)\n\n[a]",
    "| <script> | b |\n|---|---|\n| <img onerror=x> | d |", "[x](https://example.org \"><script>\")",
  ]) {
    const names = [...of(text).matchAll(/<(\w+)/g)].map(([, name]) => name ?? "");
    for (const name of names) assert.match(name, /^(?:p|h3|code|pre|a|ul|li|div|table|thead|tbody|tr|th|td|strong|em)$/, `${text}: ${name}`);
    assert.doesNotMatch(of(text), /<[^>]* on\w+=/, text);
  }
});

test("texts that are made to be slow, or deep, are not", () => {
  const before = performance.now();
  for (const text of [">".repeat(4000), "- ".repeat(2000), "*".repeat(4000), "[".repeat(4000), "`".repeat(3999), `${"a".repeat(1999)}${"_".repeat(2000)}`, "![](".repeat(1000), "<".repeat(4000), "**a *b ".repeat(570), "|a".repeat(2000), "\n".repeat(4000), "&".repeat(4000)]) {
    assert.notEqual(of(text), undefined);
  }
  assert.ok(performance.now() - before < 5_000, `${performance.now() - before} ms`);
});
