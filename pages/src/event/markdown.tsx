/**
 * Markdown of others as elements, with `marked` (15 kB as it is sent; loaded where there is a description) reading it: its
 * tokens become text and elements here, so that no markup is ever made of a text, and HTML in it is shown as it was written.
 */
import { Fragment, type ComponentChildren, type VNode } from "preact";
import { Lexer, type Token, type Tokens } from "marked";

import { safeLink } from "../shared/event.ts";

/** Depth to which lists, quotations and emphasis are followed. */
const MOST_DEPTH = 12;

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00a0", ndash: "–", mdash: "—", hellip: "…", copy: "©", euro: "€" };
/** Text with the character references that people write. */
const plain = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w{2,8}));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
    const point = decimal !== undefined ? Number(decimal) : hex !== undefined ? Number.parseInt(hex, 16) : null;
    if (point === null) return ENTITIES[name ?? ""] ?? whole;
    return point > 0 && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff) ? String.fromCodePoint(point) : "\ufffd";
  });

const nodes = (tokens: readonly Token[] | undefined, depth: number): ComponentChildren[] =>
  (tokens ?? []).map((token, at) => <Fragment key={at}>{depth > MOST_DEPTH ? token.raw : node(token, depth + 1)}</Fragment>);

/**
 * The level of each heading of a text. The page has the first two; below them, headings go down one by one, whatever levels
 * the text uses: a reader who goes from heading to heading finds none left out.
 */
function levelsOf(tokens: readonly Token[]): ReadonlyMap<Token, number> {
  const headings = tokens.filter((token): token is Tokens.Heading => token.type === "heading");
  const ranks = [...new Set(headings.map(({ depth }) => depth))].sort();
  const levels = new Map<Token, number>();
  let before = 2;
  for (const one of headings) {
    before = Math.min(3 + ranks.indexOf(one.depth), before + 1, 6);
    levels.set(one, before);
  }
  return levels;
}

function list({ ordered, start, items }: Tokens.List, depth: number): VNode {
  const inside = items.map((item, at) => <li key={at}>{nodes(item.tokens, depth)}</li>);
  return ordered ? <ol {...(typeof start === "number" && start !== 1 ? { start } : {})}>{inside}</ol> : <ul>{inside}</ul>;
}

function table({ header, rows }: Tokens.Table, depth: number): VNode {
  return (
    <div class="scroll">
      <table>
        <thead><tr>{header.map((cell, at) => <th scope="col" key={at}>{nodes(cell.tokens, depth)}</th>)}</tr></thead>
        <tbody>{rows.map((row, at) => <tr key={at}>{row.map((cell, cellAt) => <td key={cellAt}>{nodes(cell.tokens, depth)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

function link({ href, tokens }: Tokens.Link, depth: number): ComponentChildren {
  const address = safeLink(plain(href));
  const inside = nodes(tokens, depth);
  return address === null ? inside : <a href={address} rel="noopener nofollow">{inside}</a>;
}

function node(token: Token, depth: number): ComponentChildren {
  switch (token.type) {
    case "space": case "def": return null;
    // One in a list or a quotation is no heading of the page.
    case "heading": return <p><strong>{nodes(token.tokens, depth)}</strong></p>;
    case "paragraph": return <p>{nodes(token.tokens, depth)}</p>;
    case "blockquote": return <blockquote>{nodes(token.tokens, depth)}</blockquote>;
    case "list": return list(token as Tokens.List, depth);
    case "table": return table(token as Tokens.Table, depth);
    case "hr": return <hr />;
    case "br": return <br />;
    case "strong": return <strong>{nodes(token.tokens, depth)}</strong>;
    case "em": return <em>{nodes(token.tokens, depth)}</em>;
    case "del": return <del>{nodes(token.tokens, depth)}</del>;
    case "code": return <pre><code>{(token as Tokens.Code).text}</code></pre>;
    case "codespan": return <code>{(token as Tokens.Codespan).text}</code>;
    case "link": return link(token as Tokens.Link, depth);
    // Pictures from elsewhere are not loaded: what they show is read.
    case "image": return plain((token as Tokens.Image).text);
    case "escape": return (token as Tokens.Escape).text;
    case "text": return "tokens" in token && token.tokens !== undefined ? nodes(token.tokens, depth) : plain((token as Tokens.Text).text);
    // HTML, and what a newer version of the library may know.
    default: return token.raw;
  }
}

/** What the library reads in a text; null of one that is nested beyond all sense. */
function read(text: string): readonly Token[] | null {
  try {
    return new Lexer({ gfm: true, breaks: true }).lex(text);
  } catch {
    return null;
  }
}

function Heading({ token, level }: { readonly token: Token; readonly level: number }): VNode {
  const inside = nodes((token as Tokens.Heading).tokens, 1);
  return level === 3 ? <h3>{inside}</h3> : level === 4 ? <h4>{inside}</h4> : level === 5 ? <h5>{inside}</h5> : <h6>{inside}</h6>;
}

/** A text in Markdown. */
export function Markdown({ text }: { readonly text: string }) {
  const tokens = read(text);
  if (tokens === null) return <div class="markdown"><p>{text}</p></div>;
  const levels = levelsOf(tokens);
  return (
    <div class="markdown">
      {tokens.map((token, at) => {
        const level = levels.get(token);
        return <Fragment key={at}>{level === undefined ? node(token, 1) : <Heading token={token} level={level} />}</Fragment>;
      })}
    </div>
  );
}
