// How much of bodies that have not come whole yet may be in memory together. Who measures the memory of the process looks
// now and then; a hundred clients that send a large body at once fill it between two looks.

export interface BodyRoom {
  /** Whether there is room for so many more bytes of a body that `has` so many; they are then taken. */
  take(bytes: number, has: number): boolean
  giveBack(bytes: number): void
}

export function createBodyRoom(bytesMax: number): BodyRoom {
  let taken = 0
  return {
    take(bytes, has) {
      // One that is alone is let in whatever its size: bodies have a limit of their own.
      if (taken > has && taken + bytes > bytesMax) return false
      taken += bytes
      return true
    },
    giveBack(bytes) {
      taken -= bytes
    },
  }
}
