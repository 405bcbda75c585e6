/** A reporter of `node --test`: a line of JSON for each test that passed or failed, with its name and, if it failed, why. A suite is no test, and what is skipped has no outcome. */
export default async function* outcomes(events) {
  for await (const { type, data } of events) {
    if (!["test:pass", "test:fail"].includes(type) || data.details.type === "suite" || data.skip !== undefined) continue;
    const { error } = data.details;
    const why = type === "test:fail" ? String(error?.cause?.message ?? error?.message ?? error) : undefined;
    yield `${JSON.stringify({ name: data.name, why })}\n`;
  }
}
