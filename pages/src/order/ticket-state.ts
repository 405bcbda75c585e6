/** The states of a ticket, as every page names and shows them. */
import { words } from "./words.ts";

/** A ticket that is good, one that was given back or whose code is an old one, one that has let somebody in. */
export type TicketState = "valid" | "revoked" | "checked-in";

/** A state from an answer of the API; one that is not known lets nobody in. */
export const ticketState = (state: string): TicketState => (state === "valid" || state === "checked-in" ? state : "revoked");

const LOOKS: Readonly<Record<TicketState, string>> = { valid: "open", revoked: "cancelled", "checked-in": "paused" };

/** The class that a state looks like. */
export const ticketLook = (state: TicketState): string => `state ${LOOKS[state]}`;

/** A state in words. */
export const ticketWord = (state: TicketState): string => words.t(`ticket.${state}`);
