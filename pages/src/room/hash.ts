/** SHA-256 and hexadecimal digits. */

/** Bytes of hexadecimal digits. */
export const bytesOf = (hex: string): Uint8Array =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** Hexadecimal digits of bytes. */
export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** SHA-256 of parts, one after the other. */
export async function sha256(...parts: readonly (Uint8Array | readonly number[])[]): Promise<Uint8Array> {
  const whole = Uint8Array.from(parts.flatMap((part) => [...part]));
  return new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
}
