// Turns on something that only a few may use at once, such as the cores of the machine that tests share.

/** Answers with how to give the turn back. */
export type TakeTurn = () => Promise<() => void>

/** So many at once; the others wait, first come, first served. */
export function createTurns(places: number): TakeTurn {
  const waiting: (() => void)[] = []
  let free = places
  const endTurn = () => {
    const next = waiting.shift()
    if (next) next()
    else free++
  }
  return async () => {
    if (free > 0) free--
    else await new Promise<void>((resolve) => waiting.push(resolve))
    return endTurn
  }
}
