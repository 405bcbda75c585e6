/** What the seats page loads once it is needed: one module, as two would cost everybody more requests for what they share. */
export { ExchangeDialog } from "./exchange-dialog.tsx";
export { MapWay } from "./map-way.tsx";
