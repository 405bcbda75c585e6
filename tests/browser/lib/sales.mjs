/** Sale files that the tests publish, each under an id of its own. */
let made = 0;

/** An id that no other test has. */
export const saleId = (name) => `${name}-${process.pid}-${++made}`;

const inSeconds = (seconds) => new Date(Date.now() + seconds * 1000).toISOString();

/** A hall with seats to choose: two tiers, in sections of some rows. */
export function hall(name, changes = {}) {
  const rows = (section, count, seats) => ({ section, rows: Array.from({ length: count }, (_, row) => ({ row: String(row + 1), seats: { prefix: `${section}-${row + 1}-`, first: 1, count: seats } })) });
  return {
    sale: saleId(name), title: `Evening of ${name}`, currency: "CNY", opens_at: "2024-01-01T00:00:00.000Z", closes_at: "2099-12-31T23:59:59.000Z",
    state: "open", limit_per_buyer: 6, pay_window_seconds: 600, attendees: "optional",
    tiers: [
      { tier: "stalls", name: "Stalls", price_minor: 18000, sections: [rows("A", 5, 12), rows("B", 5, 12)] },
      { tier: "balcony", name: "Balcony", price_minor: 9900, sections: [rows("C", 4, 10)] },
    ],
    ...changes,
  };
}

/** A hall with a waiting room that opens in so many seconds; its draw closes one second earlier. */
export function roomHall(name, opensInSeconds, changes = {}, room = {}) {
  return hall(name, { opens_at: inSeconds(opensInSeconds), room: { draw_lead_seconds: 1, ...room }, ...changes });
}

/** Text that would be a script, were it set as markup. */
export const SCRIPT = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
