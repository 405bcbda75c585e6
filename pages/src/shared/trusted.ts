/** Trusted Types: the one policy, which lets workers be made of our own files and nothing else. */

interface Policy {
  createScriptURL(url: string): unknown;
}
interface Factory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy;
}

let policy: Policy | null | undefined;

/** The address of a script of ours, such as a worker's, in the form that a browser with Trusted Types takes. */
export function ownScript(url: string): string {
  const checked = (text: string): string => {
    const address = new URL(text, location.origin);
    if (address.origin !== location.origin || !/^\/(assets\/|sw\.js$)/.test(address.pathname)) {
      throw new TypeError(`not a script of ours: ${text}`);
    }
    return address.href;
  };
  policy ??= (globalThis as { trustedTypes?: Factory }).trustedTypes?.createPolicy("onsale", { createScriptURL: checked }) ?? null;
  return policy === null ? checked(url) : (policy.createScriptURL(url) as string);
}
