/** A grid over the seats, to find the one at a point, and those within a rectangle. */

/** Seats by the cell that they lie in. */
export class SeatGrid {
  private readonly cell: number;
  private readonly left: number;
  private readonly top: number;
  private readonly columns: number;
  private readonly rows: number;
  /** Where the seats of each cell begin in `order`. */
  private readonly starts: Uint32Array;
  private readonly order: Uint32Array;

  constructor(private readonly xy: Float32Array, bounds: readonly [number, number, number, number], pitch: number) {
    const seats = xy.length / 2;
    const area = Math.max(1e-9, (bounds[2] - bounds[0]) * (bounds[3] - bounds[1]));
    // Sparse maps get larger cells: not many more than there are seats.
    this.cell = Math.max(pitch * 2, Math.sqrt(area / Math.max(64, seats)));
    [this.left, this.top] = bounds;
    this.columns = Math.max(1, Math.ceil((bounds[2] - bounds[0]) / this.cell));
    this.rows = Math.max(1, Math.ceil((bounds[3] - bounds[1]) / this.cell));
    this.starts = new Uint32Array(this.columns * this.rows + 1);
    this.order = new Uint32Array(seats);
    for (let seat = 0; seat < seats; seat += 1) this.count(this.cellOf(seat) + 1, 1);
    for (let at = 1; at < this.starts.length; at += 1) this.count(at, this.starts[at - 1] ?? 0);
    const next = this.starts.slice();
    for (let seat = 0; seat < seats; seat += 1) {
      const cell = this.cellOf(seat);
      const at = next[cell] ?? 0;
      this.order[at] = seat;
      next[cell] = at + 1;
    }
  }

  private count(at: number, more: number): void {
    this.starts[at] = (this.starts[at] ?? 0) + more;
  }

  private column(x: number): number {
    return Math.min(this.columns - 1, Math.max(0, Math.floor((x - this.left) / this.cell)));
  }

  private row(y: number): number {
    return Math.min(this.rows - 1, Math.max(0, Math.floor((y - this.top) / this.cell)));
  }

  private cellOf(seat: number): number {
    return this.row(this.xy[seat * 2 + 1] ?? 0) * this.columns + this.column(this.xy[seat * 2] ?? 0);
  }

  /** Calls back with each seat within a rectangle (and some around it). */
  within(left: number, top: number, right: number, bottom: number, each: (seat: number) => void): void {
    const [from, to] = [this.column(left), this.column(right)];
    for (let row = this.row(top); row <= this.row(bottom); row += 1) {
      const start = this.starts[row * this.columns + from] ?? 0;
      const end = this.starts[row * this.columns + to + 1] ?? 0;
      for (let at = start; at < end; at += 1) each(this.order[at] ?? 0);
    }
  }

  /** The seat that is nearest to a point, no farther than `reach`; undefined if there is none. */
  nearest(x: number, y: number, reach: number): number | undefined {
    let best: number | undefined;
    let bestSquare = reach * reach;
    this.within(x - reach, y - reach, x + reach, y + reach, (seat) => {
      const square = ((this.xy[seat * 2] ?? 0) - x) ** 2 + ((this.xy[seat * 2 + 1] ?? 0) - y) ** 2;
      if (square <= bestSquare) [best, bestSquare] = [seat, square];
    });
    return best;
  }
}
