// Bytes that count how often they are looked at, so that "it does not hang" is a number of steps and not a time that a
// busy machine makes longer.

export interface CountedBytes {
  readonly bytes: Uint8Array
  reads(): number
}

export function countReads(bytes: Uint8Array): CountedBytes {
  let reads = 0
  const counted = new Proxy(bytes, {
    get(target, name) {
      if (typeof name === 'string' && name >= '0' && name <= ':') reads++
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { bytes: counted, reads: () => reads }
}

/** A scanner that goes over its input a few times is fine; one that goes back for every byte is not. */
export function readsAllowed(length: number): number {
  return 6 * length + 64
}
