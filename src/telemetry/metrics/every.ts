// Work that is done again and again in the background. Tests pass their own, so that none of them waits for a timer.

/** Never twice at once, and never what keeps a process alive; answers with how to stop. */
export type Every = (milliseconds: number, work: () => unknown) => () => void

export const onTimer: Every = (milliseconds, work) => {
  let isRunning = false
  const timer = setInterval(async () => {
    if (isRunning) return
    isRunning = true
    try {
      await work()
    } finally {
      isRunning = false
    }
  }, milliseconds)
  timer.unref()
  return () => clearInterval(timer)
}
