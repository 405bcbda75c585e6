/** Which categories are for people in wheelchairs. A sale file says so in the name of the category only. */

const NAMES = /wheelchair|轮椅|無障礙|无障碍|rollstuhl|fauteuils? roulants?|silla de ruedas|carrozzin/i;

/** True if the name of a category says so. */
export const isForWheelchairs = (name: string): boolean => NAMES.test(name);
