// Answers whose clients have left, and whose cost is still to come: the gateway closes its books after them.

export class Owed {
  readonly #open = new Map<Promise<void>, () => void>()

  /** `cutShort` makes it end soon. */
  async track(settling: Promise<void>, cutShort: () => void): Promise<void> {
    this.#open.set(settling, cutShort)
    try {
      await settling
    } finally {
      this.#open.delete(settling)
    }
  }

  async close(): Promise<void> {
    for (const cutShort of this.#open.values()) cutShort()
    await Promise.allSettled(this.#open.keys())
  }
}
