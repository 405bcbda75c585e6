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

/** A hall with a waiting room that opens in so many seconds; its draw closes one second earlier, by a secret: a round would take longer. */
export function roomHall(name, opensInSeconds, changes = {}, room = {}) {
  return hall(name, { opens_at: inSeconds(opensInSeconds), room: { draw_lead_seconds: 1, beacon: "operator", ...room }, ...changes });
}

/** Text that would be a script, were it set as markup. */
export const SCRIPT = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;

/** A grey JPEG of 8 by 8 pixels, in base64. */
export const GREY = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z";
/** Its SHA-256. */
export const GREY_HASH = "8e9aeefc02d24e112255f7a979f4312b0bce3b096dda38b154d0fcae68255e88";

/** An event, as a sale file has it. */
export function evening(changes = {}, about = {}) {
  return {
    starts_at: "2026-11-21T20:00:00+01:00", doors_at: "2026-11-21T18:30:00+01:00", ends_at: "2026-11-21T23:30:00+01:00", time_zone: "Europe/Vienna",
    venue: { name: "Lakeside Stadium", city: "Vienna", country: "AT" }, category: "concert", performers: ["The Lanterns", "Vela Corran"],
    about: {
      address: "Am Ufer 1, 1220 Wien", latitude: 48.23, longitude: 16.41, access: { en: "Step-free at gate C", zh: "C 门无台阶" }, minimum_age: 12, contact: "box.office@example.org",
      description: { en: "## The last night\n\nThe **closing night** of their tour, by the water.", zh: "## 最后一晚\n\n巡演**终场**，就在水边。" },
      links: [{ title: { en: "The band", zh: "乐队" }, url: "https://example.org/lanterns" }],
      images: [{ sha256: GREY_HASH, alt: { en: "Lights over the water", zh: "水面上的灯光" }, width: 8, height: 8 }], ...about,
    },
    ...changes,
  };
}
