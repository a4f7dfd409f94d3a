// What waits to be sent to a collector: bounded, in order, one batch at a time. What does not fit, or is not taken after a
// few tries, is dropped and counted.

/** `later`: the collector or the network fails, so a retry may work. `refused`: a retry would be rejected as well. */
export type SendOutcome = { readonly kind: 'sent' } | { readonly kind: 'later' | 'refused'; readonly why: string }

export interface SendQueueOptions<Item> {
  send(batch: readonly Item[]): Promise<SendOutcome>
  readonly itemsMax: number
  readonly batchMax: number
  /** Of all items together, in the unit of `push`. */
  readonly sizeMax?: number
  readonly batchSizeMax?: number
}

/** A batch is tried each time the queue is flushed. */
const triesMax = 3

export type SendQueue<Item> = ReturnType<typeof createSendQueue<Item>>

export function createSendQueue<Item>({ send, itemsMax, batchMax, ...sizes }: SendQueueOptions<Item>) {
  const { sizeMax = Number.POSITIVE_INFINITY, batchSizeMax = Number.POSITIVE_INFINITY } = sizes
  let waiting: { readonly item: Item; readonly size: number }[] = []
  let size = 0
  let dropped = 0
  /** How often sending the batch at the head of the queue has failed. */
  let tries = 0
  let sending: Promise<void> | undefined

  function nextBatch(): typeof waiting {
    let count = 0
    let batchSize = 0
    for (const { size: itemSize } of waiting.slice(0, batchMax)) {
      batchSize += itemSize
      if (batchSize > batchSizeMax && count > 0) break
      count++
    }
    return waiting.slice(0, count)
  }

  async function sendAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = nextBatch()
      const { kind } = await send(batch.map(({ item }) => item))
      if (kind === 'later' && ++tries < triesMax) return
      if (kind !== 'sent') dropped += batch.length
      tries = 0
      waiting = waiting.slice(batch.length)
      for (const each of batch) size -= each.size
    }
  }

  /** One at a time: later calls wait for the one that runs. */
  function flush(): Promise<void> {
    sending ??= sendAll().finally(() => {
      sending = undefined
    })
    return sending
  }

  return {
    /** Returns at once. */
    push(item: Item, itemSize = 0): void {
      if (waiting.length >= itemsMax || size + itemSize > sizeMax) {
        dropped++
        return
      }
      waiting.push({ item, size: itemSize })
      size += itemSize
      // Under load the queue is full long before the timer fires. A failing collector gets the next batch on the timer.
      const isBatch = waiting.length % batchMax === 0 || size >= batchSizeMax
      if (isBatch && tries === 0) void flush()
    },
    flush,
    dropped: () => dropped,
    /** What still waits counts as dropped. */
    drop(): void {
      dropped += waiting.length
      waiting = []
      size = 0
    },
  }
}
