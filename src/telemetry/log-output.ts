// Writes the log to a stream. A line that cannot be written, because the disk is full or the reader is gone or too slow, is
// dropped and counted: the log must never end or delay the gateway.

import type { Writable } from 'node:stream'

/** How much may wait in memory for a slow reader. */
const waitingCharactersMax = 4_194_304

export interface LogOutput {
  /** Whole lines. */
  write(text: string): void
  /** How many lines were dropped since the start. */
  dropped(): number
}

/** `onRecovered` gets the number of lines that were dropped since its last call. */
export function createLogOutput(
  stream: Pick<Writable, 'write'>,
  onRecovered: (lines: number) => void,
  charactersMax = waitingCharactersMax,
): LogOutput {
  let waiting = 0
  let dropped = 0
  let reported = 0
  let isLineCut = false

  const drop = (text: string): void => {
    dropped += text.split('\n').length - 1
  }
  return {
    write(text) {
      if (waiting + text.length > charactersMax) return drop(text)
      waiting += text.length
      // A failed write may have written the start of a line.
      stream.write(isLineCut ? `\n${text}` : text, (error) => {
        waiting -= text.length
        isLineCut = error != null
        if (isLineCut) return drop(text)
        if (dropped === reported) return
        const lines = dropped - reported
        reported = dropped
        onRecovered(lines)
      })
    },
    dropped: () => dropped,
  }
}
