/** Which presses on the map choose a seat, and which bring its section closer first. */

/**
 * Pixels from seat to seat from which a finger chooses. WCAG 2.2 (2.5.8, target size): targets may be smaller than 24 pixels if
 * circles of 24 pixels around them do not meet, and so the way between seats counts, not the seats' own size.
 */
export const FINGER_PIXELS = 24;
/**
 * The same for a mouse, whose point is a pixel and which is told the seat below it before it presses. Below 10 pixels not even the
 * names of the rows are written.
 */
export const MOUSE_PIXELS = 10;

/** Pixels from seat to seat from which a pointer chooses a seat; a pen, which has no hint before the press, is a finger. */
export const choosesFrom = (pointer: string): number => (pointer === "mouse" ? MOUSE_PIXELS : FINGER_PIXELS);

/** True if a press chooses the seat below it; else its section comes closer, and nothing is chosen. What has come as close as that may be off by a rounding. */
export const choosesAt = (pitchPixels: number, pointer: string): boolean => pitchPixels >= choosesFrom(pointer) - 0.01;
