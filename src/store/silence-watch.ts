// Notices statements that nobody answers: a host that vanished, or a firewall that forgot a connection, says nothing at
// all. It counts the turns of a timer and reads no clock, so that a process that was stopped for a while blames nobody.

export interface SilenceWatch {
  /** The same answer, which is waited for from now on. */
  watch<T>(answer: PromiseLike<T>): Promise<T>
  close(): void
}

export interface SilenceWatchOptions {
  readonly turnMs: number
  /** How many turns a statement may wait for its answer. */
  readonly turnsMax: number
  /** Called once; after that nothing is watched any more. */
  onSilence(): void
}

interface Waiting {
  readonly sinceTurn: number
}

export function createSilenceWatch({ turnMs, turnsMax, onSilence }: SilenceWatchOptions): SilenceWatch {
  /** In the order in which they began. */
  const waiting = new Set<Waiting>()
  let turn = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false

  function close(): void {
    isClosed = true
    clearTimeout(timer)
  }

  function start(): void {
    timer ??= setTimeout(look, turnMs)
    // The connection keeps the process for as long as there is something to wait for.
    timer.unref()
  }

  function look(): void {
    turn++
    timer = undefined
    const [oldest] = waiting
    if (oldest === undefined) return
    if (turn - oldest.sinceTurn <= turnsMax) return start()
    close()
    onSilence()
  }

  return {
    async watch(answer) {
      const one: Waiting = { sinceTurn: turn }
      waiting.add(one)
      if (!isClosed) start()
      try {
        return await answer
      } finally {
        waiting.delete(one)
      }
    },
    close,
  }
}
