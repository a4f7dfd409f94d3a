// Talks with the store for all requests of this process: while one batch is under way what comes queues, and the next
// takes it all. When the store does not answer in time or fails, whoever waits is answered without it, and the store is
// asked now and then until it is back: it answers, and in time.

import type { AdmitAnswer } from './batch.ts'

export interface Exchange<Entry> {
  /** Whether the store is to be asked at all. */
  readonly isAway: boolean
  submit(entry: Entry): void
  /** Resolves when nothing is under way, and nothing waits that could be sent. */
  settled(): Promise<void>
  close(): Promise<void>
}

export interface ExchangeOptions<Entry> {
  /** Sends these together; the answers of those that get one. */
  send(entries: readonly Entry[]): Promise<readonly AdmitAnswer[]>
  /** It was done, perhaps after `giveUp`. */
  done(entries: readonly Entry[], answers: readonly AdmitAnswer[]): void
  /** Nobody knows whether it was done, or it was not even sent; true = to be kept for later. */
  giveUp(entry: Entry, sent: boolean): boolean
  onLoss(why: string): void
  onReturn(): void
  /** What the store shall be told when it is asked whether it is back: late as it may be, others count by it. */
  probe(): readonly Entry[]
  /** How long the store may take before the process decides alone. */
  readonly patienceMs: number
}

export const batchMax = 128
const probeMs = 250
/** So long after the patience nobody waits for a batch any more; what it does then is found by the next. */
const hangMs = 2000

export function createExchange<Entry>(options: ExchangeOptions<Entry>): Exchange<Entry> {
  const { send, done, giveUp, onLoss, onReturn, probe: probeEntries, patienceMs } = options
  let queue: Entry[] = []
  let busy: Promise<void> | undefined
  let isAway = false
  let closed = false
  let probe: ReturnType<typeof setTimeout> | undefined

  const leave = (why: string, sent: readonly Entry[]): void => {
    if (!isAway) {
      isAway = true
      onLoss(why)
    }
    for (const entry of sent) giveUp(entry, true)
    queue = queue.filter((entry) => giveUp(entry, false))
  }
  const comeBack = (): void => {
    if (!isAway) return
    isAway = false
    onReturn()
  }
  const exchange = async (entries: readonly Entry[]): Promise<void> => {
    let ended = false
    let isLate = false
    const callLate = () => {
      if (ended) return
      isLate = true
      leave(`no answer within ${patienceMs} ms`, entries)
    }
    // What has arrived while this process was busy is read before it is called late.
    const watch = setTimeout(() => setImmediate(callLate), patienceMs)
    const outcome = await within(patienceMs + hangMs, send(entries)).catch(failureOf)
    ended = true
    clearTimeout(watch)
    if (outcome instanceof Error) return leave(outcome.message, entries)
    try {
      if (!isLate) comeBack()
      done(entries, outcome)
    } catch (thrown) {
      // A defect here must not leave anyone waiting.
      leave(failureOf(thrown).message, entries)
    }
  }
  const work = async (): Promise<void> => {
    do {
      const entries = queue.splice(0, batchMax)
      if (isAway) entries.push(...probeEntries().slice(0, batchMax - entries.length))
      await exchange(entries)
    } while (queue.length > 0 && !isAway)
    busy = undefined
    if (!isAway || closed) return
    probe = setTimeout(start, probeMs)
    probe.unref()
  }
  const start = (): void => {
    // Not at once: what is submitted in the same breath shares the batch.
    busy ??= Promise.resolve().then(work)
  }
  return {
    get isAway() {
      return isAway
    },
    submit(entry) {
      queue.push(entry)
      if (!isAway) start()
    },
    async settled() {
      while (busy) await busy
    },
    async close() {
      closed = true
      clearTimeout(probe)
      while (busy) await busy
      clearTimeout(probe)
    },
  }
}

function failureOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

async function within<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${milliseconds} ms`)), milliseconds)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
