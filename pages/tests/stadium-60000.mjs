/**
 * Prints a sale file of 60,000 seats, to try and measure the map with: `node pages/tests/stadium-60000.mjs > /tmp/stadium.json`.
 * Four rings of 30 blocks; each block of 20 rows of 25 seats with a stair in the middle.
 */
const RINGS = [["lower", "Lower ring", 9500], ["club", "Club ring", 14500], ["middle", "Middle ring", 7500], ["upper", "Upper ring", 4500]];
const block = (ring, number) => String((ring + 1) * 100 + number);
const tiers = RINGS.map(([tier, name, price_minor], ring) => {
  // The middle of each ring faces the stage, and is the most desirable.
  const numbers = Array.from({ length: 30 }, (_, at) => 16 + (at % 2 === 0 ? -at / 2 : (at + 1) / 2)).map((number) => ((number + 29) % 30) + 1);
  const [section, ...alike] = numbers.map((number) => block(ring, number));
  return { tier, name, price_minor, sections: [{ section, alike, rows: [{ row: "1", to: "20", seats: { first: 1, count: 25, aisles_after: [12] } }] }] };
});
console.log(JSON.stringify({
  sale: "stadium-60000", title: "Sixty thousand seats", currency: "EUR", opens_at: "2024-01-01T00:00:00Z", closes_at: "2099-12-31T23:59:59Z",
  limit_per_buyer: 6, pay_window_seconds: 600, gate: { shards: 16 }, tiers,
}, null, 1));
