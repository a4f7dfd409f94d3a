// Programmer errors. An assertion that fails is a defect of ours and ends as a 500; expected outcomes are results.

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}

/** Ends a switch over a closed union: a new member does not compile until it is handled. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`)
}
