/** The parameters of a page's path. */

/** The parameters of a path by its pattern, such as `/s/{sale}/seats`; null if it does not match. */
export function parametersOf(pattern: string, path: string): Readonly<Record<string, string>> | null {
  const wanted = pattern.split("/");
  const found = path.split("/");
  if (wanted.length !== found.length) {
    return null;
  }
  const parameters: Record<string, string> = {};
  for (const [position, segment] of wanted.entries()) {
    const value = found[position] ?? "";
    if (segment.startsWith("{")) {
      if (value === "") {
        return null;
      }
      parameters[segment.slice(1, -1)] = decoded(value);
    } else if (segment !== value) {
      return null;
    }
  }
  return parameters;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** A parameter of this page's path; empty if the path is another's. */
export const parameter = (pattern: string, name: string): string =>
  parametersOf(pattern, location.pathname)?.[name] ?? "";
